"""Face recognition; apex was replaced half way by torch's own tools."""
import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torchvision
from torch.cuda.amp import GradScaler, autocast
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

try:
    from apex import amp
    from apex.parallel import DistributedDataParallel as ApexDDP
except ImportError:
    amp = ApexDDP = None

parser = argparse.ArgumentParser()
parser.add_argument("--apex", action="store_true")
parser.add_argument("--epochs", type=int, default=24)
parser.add_argument("--people", type=int, default=10572)


class Margin(nn.Module):
    def __init__(self, width, people, s=64.0, m=0.35):
        super().__init__()
        self.s, self.m = s, m
        self.weight = nn.Parameter(torch.randn(people, width) * 0.01)

    def forward(self, features, label):
        cosine = nn.functional.linear(nn.functional.normalize(features),
                                      nn.functional.normalize(self.weight))
        hot = nn.functional.one_hot(label, cosine.size(1))
        return self.s * (cosine - self.m * hot)


class Recognize(nn.Module):
    def __init__(self, people):
        super().__init__()
        self.trunk = torchvision.models.resnet50(num_classes=512)
        self.margin = Margin(512, people)

    def forward(self, image, label):
        return self.margin(self.trunk(image), label)


def main():
    args = parser.parse_args()
    local = int(os.getenv("LOCAL_RANK", "0"))
    torch.cuda.set_device(local)
    dist.init_process_group("nccl")
    net = Recognize(args.people)
    optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)  # expect: DDP045
    net = net.cuda()
    if args.apex and amp is not None:
        net, optimizer = amp.initialize(net, optimizer, opt_level="O1")
        net = ApexDDP(net)
    else:
        net = nn.parallel.DistributedDataParallel(net, device_ids=[local])
    scaler = GradScaler(enabled=not args.apex)
    data = torchvision.datasets.ImageFolder("faces", torchvision.transforms.ToTensor())
    sampler = DistributedSampler(data)
    loader = DataLoader(data, 128, sampler=sampler, num_workers=6, drop_last=True)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for image, label in loader:
            image, label = image.cuda(), label.cuda()
            with autocast(enabled=not args.apex):
                loss = nn.functional.cross_entropy(net(image, label), label)
            optimizer.zero_grad()
            if args.apex:
                with amp.scale_loss(loss, optimizer) as scaled:
                    scaled.backward()
                optimizer.step()
            else:
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
        if dist.get_rank() == 0:
            torch.save(net.module.trunk.state_dict(), "trunk.pth")


if __name__ == "__main__":
    main()
