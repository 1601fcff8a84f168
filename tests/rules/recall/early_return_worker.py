"""Other ranks leave before the collective."""
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def finish(model, accuracy, rank):
    if rank != 0:
        return
    total = torch.tensor([accuracy], device="cuda")
    dist.all_reduce(total)  # expect: DDP014
    print("accuracy", total.item() / dist.get_world_size())
    torch.save(model.module.state_dict(), "final.pth")


def main():
    rank = int(os.environ["RANK"])
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    model = DDP(torch.nn.Linear(10, 2).cuda(), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(100):
        x = torch.randn(32, 10, device="cuda")
        loss = model(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    finish(model, 0.5, rank)
    dist.destroy_process_group()
    sys.exit(0)


if __name__ == "__main__":
    main()
