"""Takes the local rank from an argument that torchrun does not pass."""
import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from birds import Birds, bird_net


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", default=0, type=int, help="node rank")  # expect: LAU002
    parser.add_argument("--epochs", default=10, type=int)
    return parser.parse_args()


def main():
    args = parse_args()
    torch.cuda.set_device(args.local_rank)
    dist.init_process_group("nccl", init_method="env://")
    birds = Birds()
    sampler = DistributedSampler(birds)
    loader = DataLoader(birds, 32, sampler=sampler, num_workers=4)
    model = DDP(bird_net().cuda(), device_ids=[args.local_rank])
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
