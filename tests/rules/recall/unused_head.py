"""A model with a head that nothing calls."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel


class TwoHeads(nn.Module):
    def __init__(self, width=256, classes=100):
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(784, width), nn.ReLU())
        self.block = nn.Linear(width, width)
        self.classifier = nn.Linear(width, classes)
        self.aux_classifier = nn.Linear(width, classes)  # expect: DDP001

    def forward(self, x):
        h = self.stem(x.flatten(1))
        h = h + F.relu(self.block(h))
        return self.classifier(h)


def run(rank, world_size, steps):
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29501")
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    torch.cuda.set_device(rank)
    net = DistributedDataParallel(TwoHeads().to(rank), device_ids=[rank], output_device=rank)
    optimizer = torch.optim.AdamW(net.parameters())
    for _ in range(steps):
        x = torch.randn(64, 784, device=rank)
        y = torch.randint(100, (64,), device=rank)
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    count = torch.cuda.device_count()
    torch.multiprocessing.spawn(run, args=(count, 1000), nprocs=count)
