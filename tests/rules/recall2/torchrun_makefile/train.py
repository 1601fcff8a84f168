"""Depth from one image; written for the old launcher."""
import argparse

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import net

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=25)
parser.add_argument("--batch", type=int, default=16)
parser.add_argument("--local_rank", "--local-rank", type=int, default=0)  # expect: LAU002
opt = parser.parse_args()

dist.init_process_group(backend="nccl")
torch.cuda.set_device(opt.local_rank)
device = torch.device("cuda", opt.local_rank)

pairs = TensorDataset(*torch.load("depth.pt", map_location="cpu"))
sampler = DistributedSampler(pairs)
loader = DataLoader(pairs, opt.batch, sampler=sampler, num_workers=2)
model = DDP(net.Depth().to(device), device_ids=[opt.local_rank])
optimizer = torch.optim.Adam(model.parameters(), 1e-4)

for epoch in range(opt.epochs):
    sampler.set_epoch(epoch)
    for image, depth in loader:
        guess = model(image.to(device))
        loss = (guess - depth.to(device)).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if dist.get_rank() == 0:
        torch.save(model.module.state_dict(), "depth_%02d.pt" % epoch)
dist.destroy_process_group()
