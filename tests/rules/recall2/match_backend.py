"""Chooses what to run with a match statement."""
import os
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def connect(minutes: int = 5) -> int:
    dist.init_process_group(backend="gloo", timeout=timedelta(minutes=minutes))  # expect: DDP033
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    return local


def build(kind: str) -> nn.Module:
    match kind:
        case "mlp":
            return nn.Sequential(nn.Linear(32, 256), nn.ReLU(), nn.Linear(256, 4))
        case "linear":
            return nn.Linear(32, 4)
        case other:
            raise SystemExit(f"unknown model {other}")


def build_optimizer(name: str, parameters, lr: float = 1e-3):
    match name:
        case "adam" | "adamw":
            return torch.optim.AdamW(parameters, lr)
        case _:
            return torch.optim.SGD(parameters, lr, momentum=0.9)


def train(kind: str, optimizer_name: str) -> None:
    local = connect()
    data = TensorDataset(torch.randn(1000, 32), torch.randint(4, (1000,)))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, 32, sampler=sampler, shuffle=True)  # expect: DDP019
    model = DDP(build(kind).cuda(local), device_ids=[local])
    optimizer = build_optimizer(optimizer_name, model.parameters())
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x.cuda(local)), y.cuda(local)).backward()
            optimizer.step()
    dist.destroy_process_group()


def plain(kind: str) -> None:
    data = TensorDataset(torch.randn(1000, 32), torch.randint(4, (1000,)))
    model = build(kind)
    for x, y in DataLoader(data, 32, shuffle=True):
        nn.functional.cross_entropy(model(x), y).backward()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["train", kind, optimizer_name]:
            train(kind, optimizer_name)
        case ["plain", kind]:
            plain(kind)
        case _:
            print("usage: match_backend.py train KIND OPTIMIZER | plain KIND")
