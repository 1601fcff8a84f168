"""Segmentation with validation on the first process only."""
import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from torchvision.models.segmentation import deeplabv3_resnet50

from data.cityscapes import Cityscapes


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--root", default="./cityscapes")
    p.add_argument("--epochs", type=int, default=80)
    p.add_argument("--batch", type=int, default=4)
    return p.parse_args()


def mean_iou(model, loader, device):
    model.eval()
    hits = total = 0
    with torch.no_grad():
        for image, mask in loader:
            out = model(image.to(device))["out"].argmax(1)  # expect: DDP013
            hits += (out == mask.to(device)).sum().item()
            total += mask.numel()
    return hits / total


def main():
    args = get_args()
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local_rank)
    torch.cuda.set_device(device)

    net = deeplabv3_resnet50(num_classes=19).to(device)
    net = nn.SyncBatchNorm.convert_sync_batchnorm(net)
    net = nn.parallel.DistributedDataParallel(net, device_ids=[local_rank])

    train_set = Cityscapes(args.root, "train")
    sampler = DistributedSampler(train_set, shuffle=True)
    loader = DataLoader(train_set, args.batch, sampler=sampler, num_workers=4, drop_last=True)
    val_loader = DataLoader(Cityscapes(args.root, "val"), 1, num_workers=4)
    loss_fn = nn.CrossEntropyLoss(ignore_index=255)
    opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)

    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        net.train()
        for image, mask in loader:
            opt.zero_grad()
            loss = loss_fn(net(image.to(device))["out"], mask.to(device))
            loss.backward()
            opt.step()
        if dist.get_rank() == 0:
            print("mIoU", mean_iou(net, val_loader, device))
            torch.save(net.module.state_dict(), f"epoch{epoch}.pth")

    dist.destroy_process_group()


if __name__ == "__main__":
    main()
