"""The cards are chosen after CUDA was used; anomaly detection is left on."""
import os

import torch
import torch.nn as nn

from signals import loader

torch.autograd.set_detect_anomaly(True)  # expect: LAU009
print(torch.cuda.get_device_name(0))
net = nn.Conv1d(1, 8, 5).cuda()
os.environ["CUDA_VISIBLE_DEVICES"] = "2,3"  # expect: LAU005
net = nn.DataParallel(net)
optimizer = torch.optim.Adam(net.parameters())
for x, y in loader(batch_size=64):
    loss = nn.functional.mse_loss(net(x.cuda()), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
