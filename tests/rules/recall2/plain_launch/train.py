"""Needs the variables of a launcher."""
import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.01)
args = parser.parse_args()

local_rank = int(os.environ["LOCAL_RANK"])  # expect: LAU001
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
net = DDP(torch.nn.Linear(8, 1).cuda(), device_ids=[local_rank])
optimizer = torch.optim.SGD(net.parameters(), args.lr)
data = TensorDataset(torch.randn(800, 8), torch.randn(800, 1))
sampler = DistributedSampler(data)
loader = DataLoader(data, 40, sampler=sampler)
for epoch in range(10):
    sampler.set_epoch(epoch)
    for x, y in loader:
        loss = (net(x.cuda()) - y.cuda()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
dist.destroy_process_group()
