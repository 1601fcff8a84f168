"""Loaders are made before the group exists."""
import os

import torch
import torch.distributed as dist
import torchvision
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from torchvision.transforms import ToTensor

BATCH = 64


def get_loader(training=True):
    data = torchvision.datasets.KMNIST("kmnist", train=training, transform=ToTensor())
    sampler = DistributedSampler(data, shuffle=training)  # expect: DDP005
    return DataLoader(data, batch_size=BATCH, sampler=sampler, pin_memory=True)


def get_test_loader(rank, world):
    data = torchvision.datasets.KMNIST("kmnist", train=False, transform=ToTensor())
    sampler = DistributedSampler(data, num_replicas=world, rank=rank, shuffle=False)
    return DataLoader(data, batch_size=BATCH, sampler=sampler, pin_memory=True)


def init():
    dist.init_process_group("nccl", init_method="env://")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))


def main():
    loader = get_loader()
    test_loader = get_test_loader(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
    init()
    local = torch.cuda.current_device()
    net = DDP(nn.Sequential(nn.Flatten(), nn.Linear(784, 10)).cuda(), device_ids=[local])
    optimizer = torch.optim.Adam(net.parameters())
    for epoch in range(10):
        loader.sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x.cuda()), y.cuda()).backward()
            optimizer.step()
    counts = torch.zeros(2).cuda()
    with torch.no_grad():
        for x, y in test_loader:
            counts[0] += (net(x.cuda()).argmax(1).cpu() == y).sum().cuda()
            counts[1] += y.numel()
    dist.all_reduce(counts)
    print((counts[0] / counts[1]).item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
