"""Validation accuracy of one shard is printed and picks the best model."""
import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from torchvision import datasets, models, transforms


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    correct, seen = 0, 0
    for images, labels in loader:  # expect: DDP022
        images, labels = images.to(device), labels.to(device)
        correct += (model(images).argmax(dim=1) == labels).sum().item()
        seen += labels.size(0)
    return correct / seen


def train_epoch(model, loader, criterion, optimizer, device):
    model.train()
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        optimizer.step()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="imagenette")
    parser.add_argument("--epochs", type=int, default=10)
    args = parser.parse_args()
    rank, local_rank = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local_rank)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl")
    to_tensor = transforms.Compose([transforms.Resize((224, 224)), transforms.ToTensor()])
    train_set = datasets.ImageFolder(args.data + "/train", to_tensor)
    val_set = datasets.ImageFolder(args.data + "/val", to_tensor)
    train_sampler = DistributedSampler(train_set)
    val_sampler = DistributedSampler(val_set, shuffle=False)
    train_loader = DataLoader(train_set, 64, sampler=train_sampler, num_workers=8)
    val_loader = DataLoader(val_set, 64, sampler=val_sampler, num_workers=8)
    model = DDP(models.resnet18(num_classes=10).to(device), device_ids=[local_rank])
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    best = 0.0
    for epoch in range(args.epochs):
        train_sampler.set_epoch(epoch)
        train_epoch(model, train_loader, criterion, optimizer, device)
        accuracy = evaluate(model, val_loader, device)
        if rank == 0:
            print(f"epoch {epoch} accuracy {accuracy:.4f}")
            if accuracy > best:
                best = accuracy
                torch.save(model.module.state_dict(), "best.pth")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
