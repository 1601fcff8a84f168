"""Gloo left in place after moving to GPUs."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from weather import Grid, ForecastNet


def init():
    dist.init_process_group(backend="gloo")  # expect: DDP033
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))


def main():
    init()
    gpu = torch.cuda.current_device()
    model = DDP(ForecastNet().cuda(gpu), device_ids=[gpu])
    grid = Grid("era5")
    sampler = DistributedSampler(grid)
    loader = DataLoader(grid, 8, sampler=sampler, num_workers=4, pin_memory=True)
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(50):
        sampler.set_epoch(epoch)
        for now, later in loader:
            loss = nn.functional.l1_loss(model(now.cuda(gpu)), later.cuda(gpu))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
