"""Reads its rank from the environment that nothing sets."""
import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from stream import endless

ap = argparse.ArgumentParser()
ap.add_argument("--name")
args = ap.parse_args()
dist.init_process_group("nccl")  # expect: LAU001
gpu = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(gpu)
model = DDP(nn.Linear(8, 8).cuda(), device_ids=[gpu])
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for x in endless(seed=dist.get_rank()):
    loss = model(x.cuda()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
