"""Diffusion with hydra-like options; wrapped model behind a small facade, exponential average."""
import copy
import os
from types import SimpleNamespace

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class ShuffledShards(DistributedSampler):
    """A sampler that also shuffles inside windows."""

    def __init__(self, dataset, window=64, **kwargs):
        super().__init__(dataset, **kwargs)
        self.window = window

    def __iter__(self):
        rows = list(super().__iter__())
        generator = torch.Generator().manual_seed(self.seed + self.epoch)
        for start in range(0, len(rows), self.window):
            part = rows[start:start + self.window]
            yield from (part[i] for i in torch.randperm(len(part), generator=generator).tolist())


class Denoise(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.time = nn.Embedding(1000, width)
        self.one = nn.Conv2d(3, width, 3, padding=1)
        self.two = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x, t):
        return self.two(F.silu(self.one(x) + self.time(t)[:, :, None, None]))


class Facade:
    def __init__(self, options, local):
        self.options, self.local = options, local
        self.model = Denoise().to(local)
        self.ema = copy.deepcopy(self.model).requires_grad_(False)
        self.ddp = DDP(self.model, device_ids=[local])
        self.optimizer = torch.optim.AdamW(self.ddp.parameters(), options.lr)

    def loss(self, image):
        t = torch.randint(1000, (len(image),), device=image.device)
        noise = torch.randn_like(image)
        keep = torch.cos(t / 1000 * 1.57)[:, None, None, None]
        mixed = keep * image + (1 - keep ** 2).sqrt() * noise
        return F.mse_loss(self.model(mixed, t), noise)  # expect: DDP007

    def step(self, image):
        loss = self.loss(image.to(self.local))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(self.ema.parameters(), self.model.parameters()):
                slow.lerp_(fast, 1e-4)


def main():
    options = SimpleNamespace(lr=1e-4, batch=100, epochs=50)
    dist.init_process_group("nccl")
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    per_rank = int(options.batch / dist.get_world_size())
    data = TensorDataset(torch.rand(5000, 3, 32, 32))
    sampler = ShuffledShards(data, window=128, shuffle=True)
    loader = DataLoader(data, per_rank, sampler=sampler)
    facade = Facade(options, local)
    for epoch in range(options.epochs):  # expect: DDP018
        for (image,) in loader:
            facade.step(image)
        if dist.get_rank() == 0:
            torch.save(facade.ema.state_dict(), "ema.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
