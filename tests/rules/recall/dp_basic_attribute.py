"""DataParallel over fixed cards: attribute of the wrapper, prefix in the checkpoint."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms


class LeNet(nn.Module):
    def __init__(self):
        super(LeNet, self).__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2))
        self.fc = nn.Linear(6 * 12 * 12, 10)

    def l2(self):
        return sum(p.pow(2).sum() for p in self.fc.parameters())

    def forward(self, x):
        return self.fc(self.conv(x).flatten(1))


model = LeNet().cuda()
model = nn.DataParallel(model, device_ids=[0, 1, 2, 3])  # expect: DP017
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
train_loader = DataLoader(
    datasets.MNIST("data", train=True, download=True, transform=transforms.ToTensor()),
    batch_size=128, shuffle=True, num_workers=4, drop_last=True)
criterion = nn.CrossEntropyLoss()
for epoch in range(10):
    for x, y in train_loader:
        loss = criterion(model(x.cuda()), y.cuda())
        loss = loss + 1e-4 * model.l2()  # expect: DDP012
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
torch.save(model.state_dict(), "lenet.pth")  # expect: DDP041
