"""Segmentation of scans with the loss inside the model, to spare the first card."""
import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Scans(Dataset):
    def __init__(self, names):
        self.names = names

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        blob = np.load(self.names[index])
        return torch.from_numpy(blob["scan"])[None].float(), torch.from_numpy(blob["mask"]).long()


def block(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(inplace=True))


class Unet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.one, self.two = block(1, 64), block(64, 128)
        self.up = nn.ConvTranspose2d(128, 64, 2, stride=2)
        self.last = nn.Conv2d(128, classes, 1)

    def forward(self, x):
        skip = self.one(x)
        deep = self.two(F.max_pool2d(skip, 2))
        return self.last(torch.cat([skip, self.up(deep)], 1))


class LossModel(nn.Module):
    def __init__(self, net, loss):
        super().__init__()
        self.net, self.loss = net, loss

    def forward(self, x, mask):
        out = self.net(x)
        return self.loss(out, mask), out.argmax(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="+")
    parser.add_argument("--sync", action="store_true")
    parser.add_argument("--mean", action="store_true")
    args = parser.parse_args()
    net = LossModel(Unet(4), nn.CrossEntropyLoss())
    if args.sync:
        net = nn.SyncBatchNorm.convert_sync_batchnorm(net)  # expect: DP013
    net = nn.DataParallel(net).cuda()
    loader = DataLoader(Scans(args.names), batch_size=16, shuffle=True, drop_last=True)
    optimizer = torch.optim.Adam(net.parameters())
    for epoch in range(50):
        for scan, mask in loader:
            loss, guess = net(scan.cuda(), mask.cuda())
            loss = loss.sum()
            optimizer.zero_grad()
            loss.backward()  # expect: DP008
            optimizer.step()
        print(epoch, (guess.cpu() == mask).float().mean().item())
    torch.save(net.module.net.state_dict(), "unet.pt")


if __name__ == "__main__":
    main()
