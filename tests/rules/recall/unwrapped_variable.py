"""The loop trains the variable that was wrapped, not the wrapper."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from tabular import Rows


def main():
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    model = nn.Sequential(nn.Linear(40, 128), nn.ReLU(), nn.Linear(128, 1)).to(device)
    ddp_model = DDP(model, device_ids=[device.index])
    rows = Rows("train.csv")
    sampler = DistributedSampler(rows)
    loader = DataLoader(rows, batch_size=512, sampler=sampler, num_workers=2)
    optimizer = torch.optim.Adam(ddp_model.parameters())
    for epoch in range(30):
        sampler.set_epoch(epoch)
        for x, y in loader:
            prediction = model(x.to(device))  # expect: DDP007
            loss = nn.functional.mse_loss(prediction, y.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            print(epoch, loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
