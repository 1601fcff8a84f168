"""Momentum contrast: a queue of keys, a slow copy of the encoder, keys gathered under no_grad."""
import argparse
import os

import torch
import torch.nn as nn
import torchvision
from torch import distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


@torch.no_grad()
def concat_all_gather(tensor):
    parts = [torch.ones_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, tensor, async_op=False)
    return torch.cat(parts, dim=0)


class MoCo(nn.Module):
    def __init__(self, width=128, keys=65536, momentum=0.999, temperature=0.07):
        super().__init__()
        self.m, self.t, self.keys = momentum, temperature, keys
        self.fast = torchvision.models.resnet50(num_classes=width)
        self.slow = torchvision.models.resnet50(num_classes=width)
        for q, k in zip(self.fast.parameters(), self.slow.parameters()):
            k.data.copy_(q.data)
            k.requires_grad = False
        self.register_buffer("queue", nn.functional.normalize(torch.randn(width, keys), dim=0))
        self.register_buffer("at", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def follow(self):
        for q, k in zip(self.fast.parameters(), self.slow.parameters()):
            k.data.mul_(self.m).add_(q.data, alpha=1 - self.m)

    @torch.no_grad()
    def enqueue(self, keys):
        keys = concat_all_gather(keys)
        at = int(self.at)
        self.queue[:, at:at + keys.size(0)] = keys.T
        self.at[0] = (at + keys.size(0)) % self.keys

    def forward(self, query, key):
        q = nn.functional.normalize(self.fast(query), dim=1)
        with torch.no_grad():
            self.follow()
            k = nn.functional.normalize(self.slow(key), dim=1)
        positive = (q * k).sum(1, keepdim=True)
        negative = q @ self.queue.clone().detach()
        logits = torch.cat([positive, negative], 1) / self.t
        self.enqueue(k)
        return logits, torch.zeros(len(q), dtype=torch.long, device=q.device)


def update_ema(ema, model, decay=0.9999):
    with torch.no_grad():
        for slow, fast in zip(ema.parameters(), model.parameters()):
            slow.mul_(decay).add_(fast, alpha=1 - decay)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--warm-start")
    args = parser.parse_args()
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    model = DDP(MoCo().cuda(), device_ids=[local])
    if args.warm_start and rank == 0:
        blob = torch.load(args.warm_start, map_location="cpu")
        model.module.load_state_dict(blob)  # expect: DDP027
    data = torchvision.datasets.FakeData(transform=torchvision.transforms.ToTensor())
    sampler = DistributedSampler(data)
    loader = DataLoader(data, 32, sampler=sampler, drop_last=True)
    optimizer = torch.optim.SGD(model.parameters(), 0.03, momentum=0.9)
    for epoch in range(200):
        sampler.set_epoch(epoch)
        for image, _ in loader:
            image = image.cuda()
            logits, target = model(image, image.flip(-1))
            loss = nn.functional.cross_entropy(logits, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            torch.save({"state_dict": model.module.state_dict()}, f"moco_{epoch:04d}.pth")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
