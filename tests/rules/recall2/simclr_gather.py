"""SimCLR: views of all ranks meet in one similarity matrix."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
import torchvision
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from torchvision import transforms


class TwoViews:
    def __init__(self, view):
        self.view = view

    def __call__(self, image):
        return self.view(image), self.view(image)


class Encoder(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.trunk = torchvision.models.resnet18(num_classes=512)
        self.project = nn.Sequential(nn.ReLU(), nn.Linear(512, width))

    def forward(self, x):
        return F.normalize(self.project(self.trunk(x)), dim=-1)


def gather_everything(features):
    parts = [torch.empty_like(features) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, features)  # expect: DDP023
    return torch.cat(parts)


def nt_xent(first, second, temperature=0.1):
    first, second = gather_everything(first), gather_everything(second)
    everything = torch.cat([first, second])
    similar = everything @ everything.T / temperature
    similar.fill_diagonal_(float("-inf"))
    half = first.size(0)
    partner = torch.arange(2 * half, device=first.device).roll(half)
    return F.cross_entropy(similar, partner)


def main():
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    dist.init_process_group("nccl")
    view = transforms.Compose([transforms.RandomResizedCrop(32), transforms.ColorJitter(0.4, 0.4),
                               transforms.ToTensor()])
    data = torchvision.datasets.CIFAR10("cifar", transform=TwoViews(view))
    sampler = DistributedSampler(data, drop_last=True)
    loader = DataLoader(data, 256, sampler=sampler, num_workers=4, drop_last=True)
    encoder = nn.SyncBatchNorm.convert_sync_batchnorm(Encoder()).cuda()
    encoder = DistributedDataParallel(encoder, device_ids=[local])
    optimizer = torch.optim.Adam(encoder.parameters(), 1e-3)
    for epoch in range(100):
        sampler.set_epoch(epoch)
        for (a, b), _ in loader:
            both = encoder(torch.cat([a, b]).cuda())
            loss = nt_xent(*both.chunk(2))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if dist.get_rank() == 0:
            torch.save(encoder.module.trunk.state_dict(), "trunk.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
