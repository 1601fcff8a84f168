"""Restricts the devices after the first use of one."""
import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cards", default="0,1")
    return parser.parse_args()


def main():
    args = parse()
    print(torch.cuda.get_device_name(0), torch.zeros(1).cuda().device)
    os.environ["CUDA_VISIBLE_DEVICES"] = args.cards  # expect: LAU005
    os.environ["CUDA_LAUNCH_BLOCKING"] = "1"  # expect: LAU009
    dist.init_process_group("nccl")
    net = nn.Linear(10, 2).cuda()  # expect: DDP025
    net = DDP(net)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    data = TensorDataset(torch.randn(1000, 10), torch.randint(2, (1000,)))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=50, sampler=sampler)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x.cuda()), y.cuda()).backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
