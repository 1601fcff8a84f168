"""Prepares a data set on one rank while the others wait; joins the group twice."""
import os
import subprocess

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def download(url, target):
    subprocess.run(["wget", "-q", url, "-O", target], check=True)


def preprocess(source, target):
    rows = [list(map(float, line.split(","))) for line in open(source)]
    table = torch.tensor(rows)
    torch.save((table[:, :-1], table[:, -1:]), target)


def prepare():
    if dist.get_rank() == 0:
        download("https://example.org/table.csv", "table.csv")
        preprocess("table.csv", "table.pt")
    dist.barrier()


def connect():
    dist.init_process_group("nccl")
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    return local


def main():
    local = connect()
    prepare()
    data = TensorDataset(*torch.load("table.pt", map_location="cpu"))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, 256, sampler=sampler)
    dist.init_process_group("nccl")  # expect: DDP005
    model = DDP(nn.Linear(20, 1).cuda(), device_ids=[local])
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for epoch in range(10):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = (model(x.cuda()) - y.cuda()).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
