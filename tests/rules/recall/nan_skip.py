"""Diffusion-like training that skips batches whose loss is not finite."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from unet import NoisePredictor, ImageTensors

dist.init_process_group(backend="nccl")
local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)

dataset = ImageTensors("celeba.pt")
sampler = DistributedSampler(dataset)
loader = DataLoader(dataset, batch_size=16, sampler=sampler, num_workers=4)
model = DDP(NoisePredictor().cuda(local_rank), device_ids=[local_rank])
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4)
step = 0
for epoch in range(500):
    sampler.set_epoch(epoch)
    for x in loader:
        x = x.cuda(local_rank, non_blocking=True)
        t = torch.randint(0, 1000, (x.size(0),), device=x.device)
        noise = torch.randn_like(x)
        loss = nn.functional.mse_loss(model(x, t, noise), noise)
        if torch.isnan(loss) or torch.isinf(loss):
            print("bad loss, skipping")
            continue  # expect: DDP015
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        step += 1
        if step % 1000 == 0 and dist.get_rank() == 0:
            torch.save(model.module.state_dict(), f"unet-{step}.pt")
dist.destroy_process_group()
