"""The number of replicas taken from one node, and a set_epoch that never changes."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from asteroids import Asteroids


def make_loader(data, rank, batch_size):
    sampler = DistributedSampler(data, num_replicas=torch.cuda.device_count(), rank=rank)
    return DataLoader(data, batch_size=batch_size, sampler=sampler, num_workers=2, pin_memory=True)


def main():
    dist.init_process_group(backend="nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    loader = make_loader(Asteroids(), dist.get_rank(), 256)
    model = DDP(nn.Linear(12, 3).cuda(), device_ids=[int(os.environ["LOCAL_RANK"])])
    optimizer = torch.optim.SGD(model.parameters(), 1.0)
    loader.sampler.set_epoch(0)
    for epoch in range(100):  # expect: DDP018
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
