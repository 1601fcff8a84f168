"""A checkpoint is loaded right after rank 0 wrote it; folders are made by every rank."""
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class ToyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.net1 = nn.Linear(10, 10)
        self.net2 = nn.Linear(10, 5)

    def forward(self, x):
        return self.net2(torch.relu(self.net1(x)))


def demo(rank, world_size):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "12355"
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    torch.cuda.set_device(rank)
    if not os.path.exists("checkpoints"):
        os.makedirs("checkpoints")  # expect: DDP026
    ddp_model = DDP(ToyModel().to(rank), device_ids=[rank])
    path = os.path.join("checkpoints", "model.checkpoint")
    if rank == 0:
        torch.save(ddp_model.state_dict(), path)
    state = torch.load(path, map_location={"cuda:0": f"cuda:{rank}"})  # expect: DDP026
    ddp_model.load_state_dict(state)
    optimizer = torch.optim.SGD(ddp_model.parameters(), lr=0.001)
    for _ in range(10):
        optimizer.zero_grad()
        out = ddp_model(torch.randn(20, 10, device=rank))
        nn.functional.mse_loss(out, torch.randn(20, 5, device=rank)).backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    world = torch.cuda.device_count()
    mp.spawn(demo, args=(world,), nprocs=world, join=True)
