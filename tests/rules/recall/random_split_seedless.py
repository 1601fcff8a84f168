"""A random split that differs between ranks."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, random_split

from tiles import TileSet


def main():
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    tiles = TileSet("sentinel")
    train_set, val_set = random_split(tiles, [9000, 1000])  # expect: DDP035
    train_loader = DataLoader(train_set, 32, num_workers=4, shuffle=True)  # expect: DDP017
    val_loader = DataLoader(val_set, 32, num_workers=4)
    model = DDP(nn.Conv2d(4, 1, 3).cuda(), device_ids=[local_rank])
    optimizer = torch.optim.Adam(model.parameters())
    checkpoint = torch.load("start.pt")  # expect: DDP040
    model.module.load_state_dict(checkpoint)
    for epoch in range(10):
        for x, y in train_loader:
            loss = nn.functional.mse_loss(model(x.cuda()), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            total = sum(nn.functional.mse_loss(model(x.cuda()), y.cuda()).item()
                        for x, y in val_loader)
        if local_rank == 0:
            print(epoch, total)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
