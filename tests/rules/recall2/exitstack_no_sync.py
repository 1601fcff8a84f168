"""Accumulates gradients with an ExitStack; two ways stand side by side, one of them wrong."""
import os
from contextlib import ExitStack

import torch
import torch.distributed as dist
import torch.nn.functional as F
import torchvision
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


def micro_batches(loader, count):
    group = []
    for batch in loader:
        group.append(batch)
        if len(group) == count:
            yield group
            group = []


def step_right(model, optimizer, group, device):
    optimizer.zero_grad()
    for index, (x, y) in enumerate(group):
        with ExitStack() as stack:
            if index + 1 < len(group):
                stack.enter_context(model.no_sync())
            loss = F.cross_entropy(model(x.to(device)), y.to(device)) / len(group)
            loss.backward()
    optimizer.step()


def step_wrong(model, optimizer, group, device):
    optimizer.zero_grad()
    for x, y in group[:-1]:
        with model.no_sync():  # expect: DDP009
            out = model(x.to(device))
        loss = F.cross_entropy(out, y.to(device)) / len(group)
        loss.backward()
    x, y = group[-1]
    (F.cross_entropy(model(x.to(device)), y.to(device)) / len(group)).backward()
    optimizer.step()


def main():
    device = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(device)
    dist.init_process_group("nccl")
    data = torchvision.datasets.FakeData(10000, transform=torchvision.transforms.ToTensor())
    sampler = DistributedSampler(data)
    loader = DataLoader(data, 32, sampler=sampler, drop_last=True)
    model = DDP(torchvision.models.resnet18().to(device), device_ids=[device])
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    step = step_wrong if os.environ.get("OLD") else step_right
    for epoch in range(5):
        sampler.set_epoch(epoch)
        for group in micro_batches(loader, 4):
            step(model, optimizer, group, device)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
