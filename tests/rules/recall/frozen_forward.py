"""The training forward runs under no_grad."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from stereo import Pairs, DisparityNet


def step(model, batch, optimizer, device):
    left, right, disparity = (t.to(device) for t in batch)
    with torch.no_grad():
        prediction = model(left, right)  # expect: DDP047
    loss = nn.functional.smooth_l1_loss(prediction, disparity)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    model = DDP(DisparityNet().cuda(), device_ids=[local_rank])
    pairs = Pairs("sceneflow")
    sampler = DistributedSampler(pairs)
    loader = DataLoader(pairs, 4, sampler=sampler, num_workers=4)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for epoch in range(10):
        sampler.set_epoch(epoch)
        for batch in loader:
            step(model, batch, optimizer, "cuda")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
