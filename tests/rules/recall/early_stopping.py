"""Translation model with early stopping, spawned."""
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from seq2seq import ParallelCorpus, Seq2Seq, collate


class EarlyStopping:
    def __init__(self, patience=5):
        self.patience = patience
        self.best = None
        self.bad = 0
        self.early_stop = False

    def __call__(self, loss):
        if self.best is None or loss < self.best:
            self.best, self.bad = loss, 0
        else:
            self.bad += 1
            self.early_stop = self.bad >= self.patience


def setup(rank, world_size):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "12355"
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    torch.cuda.set_device(rank)


def run_epoch(model, loader, criterion, optimizer, rank):
    model.train()
    for src, tgt in loader:
        src, tgt = src.to(rank), tgt.to(rank)
        optimizer.zero_grad()
        out = model(src, tgt[:, :-1])
        loss = criterion(out.flatten(0, 1), tgt[:, 1:].flatten())
        loss.backward()
        optimizer.step()


def evaluate(model, loader, criterion, rank):
    model.eval()
    total = 0.0
    with torch.no_grad():
        for src, tgt in loader:
            src, tgt = src.to(rank), tgt.to(rank)
            out = model(src, tgt[:, :-1])
            total += criterion(out.flatten(0, 1), tgt[:, 1:].flatten()).item()  # expect: DDP022
    return total / len(loader)


def worker(rank, world_size, epochs):
    setup(rank, world_size)
    train_set, valid_set = ParallelCorpus("train"), ParallelCorpus("valid")
    train_sampler = DistributedSampler(train_set, world_size, rank)
    valid_sampler = DistributedSampler(valid_set, world_size, rank, shuffle=False, drop_last=True)
    train_loader = DataLoader(train_set, 64, sampler=train_sampler, collate_fn=collate, num_workers=2)
    valid_loader = DataLoader(valid_set, 64, sampler=valid_sampler, collate_fn=collate, num_workers=2)
    model = DistributedDataParallel(Seq2Seq(8000, 8000).to(rank), device_ids=[rank])
    criterion = torch.nn.CrossEntropyLoss(ignore_index=0)
    optimizer = torch.optim.Adam(model.parameters(), 3e-4)
    early_stopping = EarlyStopping()
    for epoch in range(epochs):
        train_sampler.set_epoch(epoch)
        run_epoch(model, train_loader, criterion, optimizer, rank)
        val_loss = evaluate(model, valid_loader, criterion, rank)
        if rank == 0:
            torch.save(model.module.state_dict(), f"translation_{epoch}.pth")
        early_stopping(val_loss)
        if early_stopping.early_stop:
            break  # expect: DDP015
    dist.destroy_process_group()


if __name__ == "__main__":
    n = torch.cuda.device_count()
    mp.spawn(worker, args=(n, 50), nprocs=n, join=True)
