"""Starts workers that forget their leading number."""
import os
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Config:
    lr = 0.1
    batch = 64
    epochs = 4


def run(config, world_size):
    rank = int(os.environ["LOCAL_RANK"])
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    torch.cuda.set_device(rank)
    data = TensorDataset(torch.randn(512, 4), torch.randn(512, 1))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, config.batch, sampler=sampler)
    net = DDP(nn.Linear(4, 1).cuda(), device_ids=[rank])
    optimizer = torch.optim.SGD(net.parameters(), config.lr)
    for epoch in range(config.epochs):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(net(x.cuda()), y.cuda()).backward()
            optimizer.step()
    dist.destroy_process_group()


def check(rank, config):
    torch.cuda.set_device(rank)
    print(rank, config.lr, torch.zeros(1, device=rank))


def main():
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "29507"
    config = Config()
    world_size = torch.cuda.device_count()
    mp.spawn(check, args=(config,), nprocs=world_size, join=True)
    mp.spawn(run, args=(config, world_size), nprocs=world_size, join=True)  # expect: LAU008


if __name__ == "__main__":
    main()
