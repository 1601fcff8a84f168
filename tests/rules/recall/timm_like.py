"""A script in the manner of the large image model libraries."""
import argparse
import logging
import os
from contextlib import nullcontext, suppress

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as NativeDDP

from factory import create_loader, create_model, create_optimizer, create_scheduler

_logger = logging.getLogger("train")
parser = argparse.ArgumentParser()
parser.add_argument("data_dir")
parser.add_argument("--model", default="resnet50")
parser.add_argument("--batch-size", type=int, default=128)
parser.add_argument("--epochs", type=int, default=300)
parser.add_argument("--clip-grad", type=float, default=None)
parser.add_argument("--amp", action="store_true")
parser.add_argument("--resume", default="")
parser.add_argument("--output", default="output")


def main():
    args = parser.parse_args()
    args.distributed = int(os.environ.get("WORLD_SIZE", "1")) > 1
    args.local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    args.rank = 0
    if args.distributed:
        torch.cuda.set_device(args.local_rank)
        dist.init_process_group(backend="nccl", init_method="env://")
        args.rank = dist.get_rank()
    device = torch.device("cuda", args.local_rank)
    model = create_model(args.model).to(device)
    optimizer = create_optimizer(args, model)
    scaler = torch.amp.GradScaler("cuda") if args.amp else None
    autocast = torch.amp.autocast("cuda") if args.amp else suppress()
    if args.distributed:
        model = NativeDDP(model, device_ids=[args.local_rank])
    if args.resume:
        state = torch.load(args.resume)  # expect: DDP040
        (model.module if args.distributed else model).load_state_dict(state["state_dict"])
    loader = create_loader(args.data_dir, args.batch_size, distributed=args.distributed)
    scheduler = create_scheduler(args, optimizer)
    for epoch in range(args.epochs):
        if args.distributed and hasattr(loader.sampler, "set_epoch"):
            loader.sampler.set_epoch(epoch)
        train_epoch(args, epoch, model, loader, optimizer, scaler, autocast)
        scheduler.step(epoch)
        if args.rank == 0:
            _logger.info("epoch %d done", epoch)
            torch.save({"state_dict": model.state_dict()},  # expect: DDP041
                       os.path.join(args.output, "last.pth.tar"))


def train_epoch(args, epoch, model, loader, optimizer, scaler, autocast):
    model.train()
    criterion = nn.CrossEntropyLoss()
    for images, target in loader:
        with autocast:
            loss = criterion(model(images), target)
        optimizer.zero_grad()
        if scaler is not None:
            scaler.scale(loss).backward()
            if args.clip_grad is not None:
                torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip_grad)  # expect: DDP046
            scaler.step(optimizer)
            scaler.update()
        else:
            loss.backward()
            if args.clip_grad is not None:
                torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip_grad)
            optimizer.step()


if __name__ == "__main__":
    main()
