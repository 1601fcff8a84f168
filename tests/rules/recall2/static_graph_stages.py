"""A network that grows while it trains, wrapped with a static graph."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Growing(nn.Module):
    def __init__(self, stages: int = 3):
        super().__init__()
        self.stem = nn.Linear(32, 128)
        self.stages = nn.ModuleList(nn.Linear(128, 128) for _ in range(stages))
        self.auxiliary = nn.Linear(128, 10)
        self.head = nn.Linear(128, 10)
        self.epoch = 0

    def forward(self, x):
        x = self.stem(x).relu()
        for stage in self.stages:
            x = stage(x).relu()
        if self.epoch < 5:  # expect: DDP003
            return self.head(x), self.auxiliary(x)
        return self.head(x), None


class Fixed(nn.Module):
    def __init__(self, residual: bool = True):
        super().__init__()
        self.residual = residual
        self.one = nn.Linear(32, 32)
        self.two = nn.Linear(32, 10)

    def forward(self, x):
        if self.residual:
            x = x + self.one(x)
        else:
            x = self.one(x)
        return self.two(x)


def main():
    dist.init_process_group("nccl")
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    growing = DDP(Growing().to(local), device_ids=[local], static_graph=True)
    fixed = DDP(Fixed().to(local), device_ids=[local], static_graph=True)
    optimizer = torch.optim.Adam([*growing.parameters(), *fixed.parameters()])
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, 64, sampler=sampler)
    for epoch in range(20):
        sampler.set_epoch(epoch)
        growing.module.epoch = epoch
        for x, y in loader:
            x, y = x.to(local), y.to(local)
            main_out, extra = growing(x)
            loss = nn.functional.cross_entropy(main_out, y)
            loss = loss + nn.functional.cross_entropy(fixed(x), y)
            if extra is not None:
                loss = loss + 0.3 * nn.functional.cross_entropy(extra, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
