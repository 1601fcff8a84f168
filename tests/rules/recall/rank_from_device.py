"""The current device taken for the rank, on more than one node."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from maps import Roads, RoadNet


def main():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    rank = torch.cuda.current_device()  # expect: DDP042
    roads = Roads()
    sampler = DistributedSampler(roads, num_replicas=dist.get_world_size(), rank=rank)
    loader = DataLoader(roads, 16, sampler=sampler, num_workers=4)
    model = DDP(RoadNet().cuda(), device_ids=[torch.cuda.current_device()])
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(12):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x.cuda()), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if torch.cuda.current_device() == 0:  # expect: DDP042
            torch.save(model.module.state_dict(), "roads.pt")
    dist.destroy_process_group()


main()
