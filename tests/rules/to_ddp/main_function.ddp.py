import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler
import argparse
import os

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

local_rank = int(os.environ.get("LOCAL_RANK", 0))


def make_loaders(args):
    examples = TensorDataset(torch.randn(64, 8), torch.randn(64, 1))
    checks = TensorDataset(torch.randn(16, 8), torch.randn(16, 1))
    assert (args.batch_size * 2) % dist.get_world_size() == 0, "the batch does not divide by the number of ranks"
    train_loader = DataLoader(examples, batch_size=(args.batch_size * 2) // dist.get_world_size(), sampler=DistributedSampler(examples), drop_last=True)
    test_loader = DataLoader(checks, batch_size=args.batch_size)
    return train_loader, test_loader


def make_model(args):
    model = nn.Linear(8, 1)
    if args.resume:
        model.load_state_dict(torch.load(args.resume, map_location="cpu"))
    return DistributedDataParallel(model.cuda(local_rank), device_ids=[local_rank])


def train(model, loader, optimizer):
    model.train()
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs.cuda()), targets.cuda())
        loss.backward()
        optimizer.step()


def main(args):
    os.makedirs(args.out, exist_ok=True)
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    train_loader, test_loader = make_loaders(args)
    model = make_model(args)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(args.epochs):
        train_loader.sampler.set_epoch(epoch)
        train(model, train_loader, optimizer)
        if dist.get_rank() == 0:
            torch.save(model.module.state_dict(), os.path.join(args.out, "last.pt"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--out", default="checkpoints")
    parser.add_argument("--resume", default="")
    main(parser.parse_args())
    dist.destroy_process_group()
