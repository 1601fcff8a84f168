"""DataParallel over a model that stays on the CPU; the cards are set in the file."""
import os

os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"
import torch
import torch.nn as nn
import torchvision

net = torchvision.models.vgg16(num_classes=10)
net = nn.DataParallel(net, device_ids=[0, 2])  # expect: DP003 DP017
net = net.cuda()
data = torchvision.datasets.CIFAR10("data", transform=torchvision.transforms.ToTensor())
loader = torch.utils.data.DataLoader(data, batch_size=127, shuffle=True)  # expect: DP004
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for epoch in range(60):
    for x, y in loader:
        optimizer.zero_grad()
        criterion(net(x.cuda()), y.cuda()).backward()
        optimizer.step()
torch.save(net.module.state_dict(), "vgg.pt")
