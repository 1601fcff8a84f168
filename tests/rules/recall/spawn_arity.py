"""The spawned function lacks the leading rank parameter."""
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP

from boards import batches, Policy


def run(args):
    rank = int(os.environ["RANK"])
    dist.init_process_group("nccl")
    torch.cuda.set_device(rank)
    model = DDP(Policy().cuda(), device_ids=[rank])
    optimizer = torch.optim.Adam(model.parameters(), lr=args["lr"])
    for board, move in batches(seed=rank):
        loss = torch.nn.functional.cross_entropy(model(board.cuda()), move.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(run, args=({"lr": 1e-3},), nprocs=torch.cuda.device_count())  # expect: LAU008
