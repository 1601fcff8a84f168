"""Uses the global rank as the device on two nodes."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from climate import Climate, ClimateNet


def main():
    rank = int(os.environ["RANK"])
    dist.init_process_group("nccl")
    torch.cuda.set_device(rank)  # expect: LAU006
    climate = Climate()
    sampler = DistributedSampler(climate)
    loader = DataLoader(climate, 4, sampler=sampler, num_workers=8)
    model = DDP(ClimateNet().cuda(), device_ids=[rank])
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(10):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x.cuda()), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
