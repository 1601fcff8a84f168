# Trains a small classifier on two cards. Written as one flat script.
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler
from torchvision import datasets, transforms

WORLD = 2
EPOCHS = 12


def train(gpu):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = os.environ.get("PORT", "29511")
    dist.init_process_group("nccl", rank=gpu, world_size=WORLD)
    torch.cuda.set_device(gpu)
    net = nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
    net = DistributedDataParallel(net.cuda(gpu), device_ids=[0, 1])  # expect: DDP004
    ds = datasets.MNIST("mnist", train=True, transform=transforms.ToTensor())
    sampler = DistributedSampler(ds, num_replicas=WORLD, rank=gpu)
    loader = DataLoader(ds, batch_size=128, sampler=sampler)
    opt = torch.optim.Adam(net.parameters())
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        for x, y in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(net(x.cuda(gpu)), y.cuda(gpu)).backward()
            opt.step()
    if gpu == 0:
        torch.save(net.module.state_dict(), "mnist.pt")
    dist.destroy_process_group()


mp.spawn(train, nprocs=WORLD)  # expect: LAU008
