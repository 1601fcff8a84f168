"""DDP told to use all cards of the node in one process."""
import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from imagery import Tiles, make_model


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int, default=0)  # expect: LAU003
    parser.add_argument("--epochs", type=int, default=10)
    args = parser.parse_args()
    torch.cuda.set_device(args.local_rank)
    dist.init_process_group(backend="nccl")
    model = make_model().cuda()
    model = DDP(model, device_ids=[0, 1, 2, 3])  # expect: DDP004
    tiles = Tiles()
    sampler = DistributedSampler(tiles)
    loader = DataLoader(tiles, 32, sampler=sampler, num_workers=4)
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(model(x.cuda()), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
