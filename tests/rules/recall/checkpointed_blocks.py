"""Activation checkpointing with the search for unused parameters."""
import os

import torch
import torch.distributed as dist
import torch.utils.checkpoint as cp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from protein import Chains


class Trunk(nn.Module):
    def __init__(self, depth=8, width=512):
        super().__init__()
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(width, 8) for _ in range(depth))
        self.out = nn.Linear(width, 21)

    def forward(self, x):
        for block in self.blocks:
            x = cp.checkpoint(block, x)  # expect: DDP028
        return self.out(x)


def main():
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    model = DDP(Trunk().cuda(), device_ids=[local_rank], find_unused_parameters=True)
    chains = Chains()
    sampler = DistributedSampler(chains)
    loader = DataLoader(chains, 4, sampler=sampler, num_workers=2)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    for epoch in range(10):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x.cuda()).flatten(0, 1), y.cuda().flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
