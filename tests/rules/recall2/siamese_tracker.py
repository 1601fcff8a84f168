"""A Siamese tracker: one network looks at two crops, one loss."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Embed(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 96, 11, stride=2), nn.BatchNorm2d(96), nn.ReLU(), nn.MaxPool2d(3, 2),
            nn.Conv2d(96, 256, 5), nn.BatchNorm2d(256), nn.ReLU())

    def forward(self, x):
        return self.layers(x)


class Match(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(1))

    def forward(self, template, search):
        n = template.size(0)
        flat = search.reshape(1, -1, *search.shape[2:])
        out = F.conv2d(flat, template, groups=n)
        return self.gain * out.reshape(n, 1, *out.shape[2:])


def main():
    dist.init_process_group("nccl")
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    embed = DDP(Embed().cuda(), device_ids=[local])
    other = DDP(Embed().cuda(), device_ids=[local], broadcast_buffers=False)
    match = Match().cuda()
    match = DDP(match, device_ids=[local])
    parameters = [*embed.parameters(), *other.parameters(), *match.parameters()]
    optimizer = torch.optim.SGD(parameters, 1e-2, momentum=0.9)
    data = TensorDataset(*torch.load("crops.pt", map_location="cpu"))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, 8, sampler=sampler, num_workers=4)
    for epoch in range(50):
        sampler.set_epoch(epoch)
        for template, search, label in loader:
            template, search, label = template.cuda(), search.cuda(), label.cuda()
            first = embed(template)
            second = embed(search)  # expect: DDP011
            quiet = other(template).mean() + other(search).mean()
            loss = F.soft_margin_loss(match(first, second), label) + 0.1 * quiet.square()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if dist.get_rank() == 0:
            torch.save(embed.module.state_dict(), "embed.pth")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
