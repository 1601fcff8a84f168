"""Graph regression."""
import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    dist.init_process_group("nccl")
    gpu = dist.get_rank() % torch.cuda.device_count()
    torch.cuda.set_device(gpu)
    net = DistributedDataParallel(nn.Linear(64, 1).cuda(gpu), device_ids=[gpu])
    data = TensorDataset(torch.randn(4096, 64), torch.randn(4096, 1))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=64, sampler=sampler)
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    for epoch in range(8):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = nn.functional.l1_loss(net(x.cuda(gpu)), y.cuda(gpu))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
