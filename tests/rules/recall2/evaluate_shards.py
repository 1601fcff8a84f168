"""Trains and validates on shards; the best model is chosen by what rank 0 saw."""
import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torchvision
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from torchvision.transforms import ToTensor


class AverageMeter:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, value, n=1):
        self.total += value * n
        self.count += n

    @property
    def avg(self):
        return self.total / max(1, self.count)


def is_main_process():
    return not dist.is_initialized() or dist.get_rank() == 0


def train_one_epoch(model, loader, criterion, optimizer, device):
    model.train()
    meter = AverageMeter()
    for image, label in loader:
        image, label = image.to(device), label.to(device)
        loss = criterion(model(image), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        meter.update(loss.item(), len(label))
    return meter.avg


@torch.no_grad()
def validate(model, loader, device):
    model.eval()
    top1 = AverageMeter()
    for image, label in loader:
        guess = model(image.to(device)).argmax(1).cpu()
        top1.update((guess == label).float().mean().item(), len(label))
    return top1.avg  # expect: DDP022


def main(args):
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group(backend="nccl")
    train = torchvision.datasets.SVHN("svhn", "train", transform=ToTensor())
    val = torchvision.datasets.SVHN("svhn", "test", transform=ToTensor())
    train_sampler = DistributedSampler(train)
    val_sampler = DistributedSampler(val, shuffle=False)
    train_loader = DataLoader(train, args.batch, sampler=train_sampler, num_workers=4)
    val_loader = DataLoader(val, args.batch, sampler=val_sampler, num_workers=4)
    model = torchvision.models.resnet18(num_classes=10).to(local_rank)
    model = DDP(model, device_ids=[local_rank])
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    best = 0.0
    for epoch in range(args.epochs):
        train_sampler.set_epoch(epoch)
        train_one_epoch(model, train_loader, criterion, optimizer, local_rank)
        accuracy = validate(model, val_loader, local_rank)
        scheduler.step()
        if is_main_process() and accuracy > best:
            best = accuracy
            torch.save(model.module.state_dict(), "best.pth")
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--epochs", type=int, default=60)
    main(parser.parse_args())
