"""A run under Slurm: each task is one rank, its number comes from the environment."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from particles import Particles


def setup():
    rank = int(os.environ["SLURM_PROCID"])
    world = int(os.environ["SLURM_NTASKS"])
    dist.init_process_group("nccl", init_method="env://", rank=rank, world_size=world)
    torch.cuda.set_device(rank)  # expect: LAU006
    return rank, world


def main():
    rank, world = setup()
    device = torch.device("cuda")
    net = nn.Sequential(nn.Linear(40, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU(),
                        nn.Linear(512, 2)).to(device)
    net = DDP(net)
    dataset = Particles(os.environ["DATA"])
    sampler = DistributedSampler(dataset, num_replicas=world, rank=rank, seed=5)
    loader = DataLoader(dataset, batch_size=1024, sampler=sampler, num_workers=4)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    for epoch in range(30):
        sampler.set_epoch(epoch)
        for features, label in loader:
            loss = nn.functional.cross_entropy(net(features.to(device)), label.to(device))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        if rank == 0:
            torch.save(net.module.state_dict(), f"net-{epoch:03d}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
