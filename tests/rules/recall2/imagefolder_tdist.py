"""Image classification with a worker per GPU; torch.distributed goes by the name tdist."""
import argparse
import logging
import os

import torch
import torch.distributed as tdist
import torch.multiprocessing as mp
from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel
from torch.utils import data
from torchvision import datasets, models, transforms

log = logging.getLogger("train")


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("root")
    p.add_argument("--arch", default="resnet34", choices=["resnet18", "resnet34"])
    p.add_argument("--epochs", type=int, default=40)
    p.add_argument("--bs", type=int, default=64, help="images a process")
    p.add_argument("--resume", default=None)
    p.add_argument("--out", default="checkpoint.pt")
    return p.parse_args()


def transforms_for(training):
    if training:
        return transforms.Compose([transforms.RandomResizedCrop(224), transforms.ToTensor()])
    return transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224),
                               transforms.ToTensor()])


def worker(local, args, world):
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "0")
    tdist.init_process_group("nccl", rank=local, world_size=world,
                             init_method="tcp://127.0.0.1:23717")
    torch.cuda.set_device(local)
    net = getattr(models, args.arch)(num_classes=100).cuda()
    net = DistributedDataParallel(net, device_ids=[local])
    opt = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    start = 0
    if args.resume:
        state = torch.load(args.resume)  # expect: DDP040
        net.module.load_state_dict(state["net"])
        opt.load_state_dict(state["opt"])
        start = state["epoch"]

    train = datasets.ImageFolder(os.path.join(args.root, "train"), transforms_for(True))
    val = datasets.ImageFolder(os.path.join(args.root, "val"), transforms_for(False))
    sampler = data.distributed.DistributedSampler(train)
    train_loader = data.DataLoader(train, args.bs, sampler=sampler, num_workers=4,
                                   pin_memory=True, drop_last=True)
    # Every rank sees the whole validation set; only rank 0 tells its result.
    val_loader = data.DataLoader(val, 256, shuffle=False, num_workers=4)

    loss_of = nn.CrossEntropyLoss()
    for epoch in range(start, args.epochs):
        sampler.set_epoch(epoch)
        net.train()
        for x, y in train_loader:
            x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
            opt.zero_grad(set_to_none=True)
            loss_of(net(x), y).backward()
            opt.step()
        net.eval()
        hits = 0
        with torch.inference_mode():
            for x, y in val_loader:
                hits += (net.module(x.cuda()).argmax(1).cpu() == y).sum().item()
        if local == 0:
            log.info("epoch %d: %.3f", epoch, hits / len(val))
        torch.save({"net": net.module.state_dict(), "opt": opt.state_dict(),  # expect: DDP039
                    "epoch": epoch + 1}, args.out)
    tdist.destroy_process_group()


if __name__ == "__main__":
    arguments = parse()
    gpus = torch.cuda.device_count()
    mp.spawn(worker, args=(arguments, gpus), nprocs=gpus)
