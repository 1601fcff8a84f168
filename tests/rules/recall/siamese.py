"""Two forwards of one DDP model with BatchNorm, one backward."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from torchvision.models import resnet18

from pairs import PairFolder


def main():
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    encoder = resnet18(num_classes=128).cuda()
    encoder = DistributedDataParallel(encoder, device_ids=[local_rank])
    pairs = PairFolder("faces")
    sampler = DistributedSampler(pairs)
    loader = DataLoader(pairs, batch_size=64, sampler=sampler, num_workers=6, drop_last=True)
    optimizer = torch.optim.SGD(encoder.parameters(), lr=0.03, momentum=0.9)
    loss_fn = nn.CosineEmbeddingLoss()
    for epoch in range(100):
        sampler.set_epoch(epoch)
        for a, b, same in loader:
            za = encoder(a.cuda())
            zb = encoder(b.cuda())  # expect: DDP011
            loss = loss_fn(F.normalize(za), F.normalize(zb), same.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
