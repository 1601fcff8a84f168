"""no_sync placed around the wrong half."""
import contextlib
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from shapes import Shapes, ShapeNet


def main():
    dist.init_process_group("nccl")
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    model = DDP(ShapeNet().cuda(rank), device_ids=[rank])
    data = Shapes()
    sampler = DistributedSampler(data)
    loader = DataLoader(data, 16, sampler=sampler, num_workers=2, drop_last=True)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    accumulate = 4
    for epoch in range(20):
        sampler.set_epoch(epoch)
        for i, (x, y) in enumerate(loader):
            last = (i + 1) % accumulate == 0 or i + 1 == len(loader)
            out = model(x.cuda(rank))
            loss = F.cross_entropy(out, y.cuda(rank)) / accumulate
            context = contextlib.nullcontext() if last else model.no_sync()
            with context:  # expect: DDP009
                loss.backward()
            if last:
                optimizer.step()
                optimizer.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
