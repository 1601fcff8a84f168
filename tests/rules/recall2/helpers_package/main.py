"""Trains an image classifier in the style of a research repository with its own utils."""
import argparse
import json
from pathlib import Path

import torch
import torch.nn as nn
import torchvision
from torch.utils.data import BatchSampler, DataLoader, DistributedSampler, RandomSampler

import utils.comm as comm
from engine import evaluate, train_one_epoch


def get_args_parser():
    parser = argparse.ArgumentParser("train", add_help=False)
    parser.add_argument("--lr", default=1e-4, type=float)
    parser.add_argument("--batch_size", default=2, type=int)
    parser.add_argument("--epochs", default=300, type=int)
    parser.add_argument("--output_dir", default="")
    parser.add_argument("--resume", default="")
    parser.add_argument("--eval", action="store_true")
    parser.add_argument("--world_size", default=1, type=int)
    parser.add_argument("--dist_url", default="env://")
    return parser


def main(args):
    comm.init_distributed_mode(args)
    device = torch.device("cuda")
    torch.manual_seed(42 + comm.get_rank())
    model = torchvision.models.convnext_tiny().to(device)
    model_without_ddp = model
    if args.distributed:
        model = nn.parallel.DistributedDataParallel(model, device_ids=[args.gpu])
        model_without_ddp = model.module
    optimizer = torch.optim.AdamW(model_without_ddp.parameters(), lr=args.lr)
    train = torchvision.datasets.FakeData(transform=torchvision.transforms.ToTensor())
    test = torchvision.datasets.FakeData(100, transform=torchvision.transforms.ToTensor())
    sampler = DistributedSampler(train) if args.distributed else RandomSampler(train)
    batches = BatchSampler(sampler, args.batch_size, drop_last=True)
    loader = DataLoader(train, batch_sampler=batches, num_workers=2)
    test_loader = DataLoader(test, args.batch_size, shuffle=False)
    if args.resume:
        checkpoint = torch.load(args.resume, map_location="cpu")
        model_without_ddp.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
    if args.eval:
        print(evaluate(model, test_loader, device))
        return
    output_dir = Path(args.output_dir)
    for epoch in range(args.epochs):
        if args.distributed:
            loader.batch_sampler.sampler.set_epoch(epoch)
        loss = train_one_epoch(model, loader, optimizer, device)
        scores = evaluate(model, test_loader, device)
        state = {"model": model_without_ddp.state_dict(), "optimizer": optimizer.state_dict()}
        comm.save_once(state, output_dir / "checkpoint.pth")
        if epoch % 50 == 0:
            comm.save_anywhere(state, output_dir / f"checkpoint{epoch:04}.pth")
        if args.output_dir and comm.is_main_process():
            with (output_dir / "log.txt").open("a") as stream:
                stream.write(json.dumps({"epoch": epoch, "loss": loss, **scores}) + "\n")


if __name__ == "__main__":
    main(get_args_parser().parse_args())
