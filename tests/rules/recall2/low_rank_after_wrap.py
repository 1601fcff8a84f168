"""Adds low-rank layers to a wrapped network."""
import argparse
import os

import torch
import torch.nn as nn
from torch import distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class LowRank(nn.Module):
    def __init__(self, linear: nn.Linear, rank: int = 8):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.down = nn.Linear(linear.in_features, rank, bias=False)
        self.up = nn.Linear(rank, linear.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return self.linear(x) + self.up(self.down(x))


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(64, 256)
        self.second = nn.Linear(256, 1)

    def forward(self, x):
        return self.second(self.first(x).relu())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("weights")
    parser.add_argument("--adapt", action="store_true")
    args = parser.parse_args()
    dist.init_process_group("nccl")
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    scorer = Scorer()
    scorer.load_state_dict(torch.load(args.weights, map_location="cpu"))
    scorer.second = LowRank(scorer.second)
    model = DDP(scorer.to(local), device_ids=[local])
    if args.adapt:
        setattr(model.module, "first", LowRank(model.module.first).to(local))  # expect: DDP006
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad])
    data = TensorDataset(torch.randn(2048, 64), torch.randn(2048, 1))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, 64, sampler=sampler)
    for epoch in range(5):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x.to(local)), y.to(local))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
