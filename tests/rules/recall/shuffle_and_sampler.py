"""shuffle=True beside a sampler; the local rank shards the data."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def get_loaders(batch_size):
    x = torch.randn(10000, 20)
    y = x.sum(1, keepdim=True)
    train_set = TensorDataset(x[:8000], y[:8000])
    valid_set = TensorDataset(x[8000:], y[8000:])
    local_rank = int(os.environ["LOCAL_RANK"])
    world_size = int(os.environ["WORLD_SIZE"])
    train_sampler = DistributedSampler(train_set, num_replicas=world_size, rank=local_rank)
    train_loader = DataLoader(train_set, batch_size=batch_size, shuffle=True,  # expect: DDP019
                              sampler=train_sampler, num_workers=1)
    valid_loader = DataLoader(valid_set, batch_size=batch_size, shuffle=False)
    return train_loader, valid_loader, train_sampler


def main():
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    train_loader, valid_loader, sampler = get_loaders(64)
    model = DDP(nn.Linear(20, 1).cuda(), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    for epoch in range(10):
        sampler.set_epoch(epoch)
        for x, y in train_loader:
            loss = (model(x.cuda()) - y.cuda()).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
