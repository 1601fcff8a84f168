"""A flow model: its training loss is a method of the network."""
import math
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Coupling(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(size // 2, 128), nn.ReLU(), nn.Linear(128, size))

    def forward(self, x):
        a, b = x.chunk(2, -1)
        shift, scale = self.net(a).chunk(2, -1)
        scale = scale.tanh()
        return torch.cat([b * scale.exp() + shift, a], -1), scale.sum(-1)


class Flow(nn.Module):
    def __init__(self, size=8, depth=6):
        super().__init__()
        self.size = size
        self.layers = nn.ModuleList(Coupling(size) for _ in range(depth))

    def forward(self, x):
        volume = torch.zeros(x.size(0), device=x.device)
        for layer in self.layers:
            x, part = layer(x)
            volume = volume + part
        return x, volume

    def log_prob(self, x):
        z, volume = self(x)
        return -0.5 * z.square().sum(-1) - 0.5 * self.size * math.log(2 * math.pi) + volume


def train_epoch(flow, loader, optimizer, device):
    flow.train()
    for (x,) in loader:
        loss = -flow.module.log_prob(x.to(device)).mean()  # expect: DDP007
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()


@torch.no_grad()
def likelihood(flow, x):
    flow.eval()
    return flow.module.log_prob(x).mean()


def main():
    local = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    flow = DistributedDataParallel(Flow().to(device), device_ids=[local])
    optimizer = torch.optim.Adam(flow.parameters(), 1e-3)
    data = TensorDataset(torch.randn(65536, 8))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, 512, sampler=sampler)
    held_out = torch.randn(4096, 8, generator=torch.Generator().manual_seed(0)).to(device)
    for epoch in range(20):
        sampler.set_epoch(epoch)
        train_epoch(flow, loader, optimizer, device)
        score = likelihood(flow, held_out)
        if dist.get_rank() == 0:
            print(epoch, score.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
