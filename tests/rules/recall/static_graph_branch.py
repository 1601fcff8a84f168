"""static_graph beside a forward that changes with the epoch."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from depth import Scenes


class Refiner(nn.Module):
    def __init__(self):
        super().__init__()
        self.epoch = 0
        self.coarse = nn.Conv2d(3, 1, 3, padding=1)
        self.fine = nn.Conv2d(1, 1, 3, padding=1)

    def forward(self, x):
        y = self.coarse(x)
        if self.epoch > 5:
            y = y + self.fine(y)  # expect: DDP003
        return y


dist.init_process_group("nccl")
local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
model = DDP(Refiner().cuda(), device_ids=[local_rank], static_graph=True)
scenes = Scenes()
sampler = DistributedSampler(scenes)
loader = DataLoader(scenes, 8, sampler=sampler, num_workers=4)
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(20):
    sampler.set_epoch(epoch)
    model.module.epoch = epoch
    for x, y in loader:
        loss = nn.functional.l1_loss(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
dist.destroy_process_group()
