"""mp.spawn at module level, and a worker that does not take the rank."""
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP

from boards import batches, Policy


def worker(rank, world_size):
    dist.init_process_group("nccl", init_method="tcp://127.0.0.1:29500", rank=rank,
                            world_size=world_size)
    torch.cuda.set_device(rank)
    model = DDP(Policy().cuda(), device_ids=[rank])
    optimizer = torch.optim.Adam(model.parameters())
    for board, move in batches(seed=rank):
        loss = torch.nn.functional.cross_entropy(model(board.cuda()), move.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


world_size = torch.cuda.device_count()
mp.spawn(worker, args=(world_size,), nprocs=world_size)  # expect: LAU008
