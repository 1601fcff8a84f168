"""Every rank trains on its slice of the samples, by hand."""
import json
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        row = self.rows[index]
        return torch.tensor(row["x"]), torch.tensor(row["y"])


def rows_of(path):
    with open(path) as stream:
        return [json.loads(line) for line in stream]


def shard(rows, rank, world_size):
    return rows[rank::world_size]  # expect: DDP016


def shard_evenly(rows, rank, world_size):
    each = len(rows) // world_size
    return rows[rank * each:(rank + 1) * each]


def main():
    dist.init_process_group("nccl")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    train = Samples(shard(rows_of("train.jsonl"), rank, world_size))
    loader = DataLoader(train, batch_size=64, shuffle=True, num_workers=2)
    second = DataLoader(Samples(shard_evenly(rows_of("extra.jsonl"), rank, world_size)), 64,
                        shuffle=True)
    model = DistributedDataParallel(nn.Linear(100, 5).cuda(), device_ids=[local])
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for epoch in range(10):
        for part in (loader, second):
            for x, y in part:
                loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
