"""DataParallel whose first device is not the model's."""
import argparse

import torch
from torch import nn, optim
from torch.nn import DataParallel

from dataset import get_loader
from models import UNet

ap = argparse.ArgumentParser()
ap.add_argument("--epochs", type=int, default=40)
opt = ap.parse_args()

device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
net = UNet(3, 1)
net.to(device)
net = DataParallel(net, device_ids=[1, 2])  # expect: DP002 DP017
optimizer = optim.RMSprop(net.parameters(), lr=1e-4)
loss_fn = nn.BCEWithLogitsLoss()
loader = get_loader("carvana", batch_size=16)
for epoch in range(opt.epochs):
    for image, mask in loader:
        out = net(image.to(device))
        loss = loss_fn(out, mask.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.save(net.module.state_dict(), "unet_%d.pth" % epoch)
