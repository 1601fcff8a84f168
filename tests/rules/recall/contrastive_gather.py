"""A contrastive loss over gathered features that carry no gradient."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from simclr import TwoViews, projector


def gather(tensor):
    out = [torch.zeros_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(out, tensor)  # expect: DDP023
    return torch.cat(out, dim=0)


def nt_xent(z1, z2, temperature=0.1):
    z1, z2 = F.normalize(z1), F.normalize(z2)
    all1, all2 = gather(z1), gather(z2)
    logits = all1 @ all2.t() / temperature
    labels = torch.arange(logits.size(0), device=logits.device)
    return F.cross_entropy(logits, labels)


def main():
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    model = nn.SyncBatchNorm.convert_sync_batchnorm(projector(128)).cuda()
    model = DDP(model, device_ids=[local_rank])
    views = TwoViews("images")
    sampler = DistributedSampler(views)
    loader = DataLoader(views, 256, sampler=sampler, num_workers=8, drop_last=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    for epoch in range(200):
        sampler.set_epoch(epoch)
        for a, b in loader:
            z = model(torch.cat([a, b]).cuda())
            z1, z2 = z.chunk(2)
            loss = nt_xent(z1, z2)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
