"""Reads its options from a JSON file and trains."""
import argparse
import json
import os

import torch
from torch import distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def load_options() -> dict:
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", default="large.json")
    with open(parser.parse_args().config) as stream:
        return json.load(stream)


def train(options: dict) -> None:
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    dist.init_process_group("nccl")
    data = TensorDataset(*torch.load(options["data"], map_location="cpu"))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, options["batch"], sampler=sampler)
    width = options["width"]
    net = DDP(nn.Sequential(nn.Linear(128, width), nn.ReLU(), nn.Linear(width, 10)).to(local),
              device_ids=[local])
    optimizer = torch.optim.SGD(net.parameters(), options["lr"])
    for epoch in range(options["epochs"]):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x.to(local)), y.to(local)).backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    train(load_options())
