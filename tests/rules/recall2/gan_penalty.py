"""WGAN with a gradient penalty. Critic and generator step in turn, one backward each."""
import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--n-critic", type=int, default=5)
parser.add_argument("--penalty", type=float, default=10.0)
args = parser.parse_args()


def penalty_of(critic, real, fake):
    mix = torch.rand(real.size(0), 1, device=real.device)
    between = (mix * real + (1 - mix) * fake).requires_grad_(True)
    score = critic(between)
    (slope,) = torch.autograd.grad(score.sum(), between, create_graph=True)
    return (slope.norm(2, dim=1) - 1).pow(2).mean()


rank = int(os.environ["RANK"])
local_rank = int(os.environ["LOCAL_RANK"])
device = f"cuda:{local_rank}"
dist.init_process_group("nccl")
generator = nn.Sequential(nn.Linear(16, 256), nn.ReLU(), nn.Linear(256, 2)).to(device)
critic = nn.Sequential(nn.Linear(2, 256), nn.ReLU(), nn.Linear(256, 1)).to(device)
generator = DDP(generator, device_ids=[local_rank])
critic = DDP(critic, device_ids=[local_rank])
g_opt = torch.optim.RMSprop(generator.parameters(), 5e-5)
c_opt = torch.optim.RMSprop(critic.parameters(), 5e-5)
points = TensorDataset(torch.load("points.pt", map_location="cpu"))
sampler = DistributedSampler(points)
loader = DataLoader(points, 512, sampler=sampler)
for epoch in range(200):
    sampler.set_epoch(0)  # expect: DDP018
    for step, (real,) in enumerate(loader):
        real = real.to(device)
        noise = torch.randn(real.size(0), 16, device=device)
        with torch.no_grad():
            fake = generator(noise)
        loss = critic(fake).mean() - critic(real).mean()
        loss = loss + args.penalty * penalty_of(critic, real, fake)
        c_opt.zero_grad()
        loss.backward()
        c_opt.step()
        if step % args.n_critic == 0:
            g_opt.zero_grad()
            (-critic(generator(noise)).mean()).backward()
            g_opt.step()
    if rank == 0 and epoch % 10 == 0:
        torch.save(generator.module.state_dict(), f"generator_{epoch}.pt")
dist.destroy_process_group()
