"""Entry point; the loaders come from another file."""
import argparse
import os

import torch
import torch.distributed as dist
from torch import nn

import utils
from dataset import build_loader
from engine import evaluate, train_one_epoch
from model import SmallCNN


def main(args):
    utils.init_distributed(args)
    device = torch.device("cuda", args.gpu)
    model = SmallCNN().to(device)
    model_without_ddp = model
    if args.distributed:
        model = nn.parallel.DistributedDataParallel(model, device_ids=[args.gpu])
        model_without_ddp = model.module
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model_without_ddp.parameters(), lr=args.lr)
    train_loader = build_loader("train", args)
    val_loader = build_loader("val", args)
    for epoch in range(args.epochs):
        train_one_epoch(model, criterion, train_loader, optimizer, device)
        if utils.is_main_process():
            accuracy = evaluate(model_without_ddp, val_loader, device)
            print(epoch, accuracy)
            utils.save_on_master({"model": model_without_ddp.state_dict()}, args.output)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--output", default="model.pth")
    arguments = parser.parse_args()
    os.makedirs("runs", exist_ok=True)
    main(arguments)
