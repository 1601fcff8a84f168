"""The classifier is replaced after the model was wrapped."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torchvision import models
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

import flowers


def build(local_rank):
    net = models.efficientnet_b0(weights="IMAGENET1K_V1").to(local_rank)
    net = DDP(net, device_ids=[local_rank])
    return net


def main():
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    model = build(local_rank)
    model.module.classifier = nn.Linear(1280, 102).to(local_rank)  # expect: DDP006
    train = flowers.Flowers("train")
    sampler = DistributedSampler(train)
    loader = DataLoader(train, 32, sampler=sampler, num_workers=4)
    opt = torch.optim.Adam(model.parameters(), 1e-4)
    for epoch in range(10):
        sampler.set_epoch(epoch)
        for image, label in loader:
            loss = nn.functional.cross_entropy(model(image.to(local_rank)), label.to(local_rank))
            opt.zero_grad()
            loss.backward()
            opt.step()
    dist.destroy_process_group()


main()
