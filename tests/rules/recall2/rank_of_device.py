"""Ranks are read off the current device; the run spans machines."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class Noise(Dataset):
    def __len__(self):
        return 10000

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.randn(3, 32, 32, generator=generator), index % 10


def main():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    rank = torch.cuda.current_device()  # expect: DDP042
    device = torch.cuda.current_device()
    data = Noise()
    sampler = DistributedSampler(data, num_replicas=torch.cuda.device_count(),
                                 rank=dist.get_rank())
    loader = DataLoader(data, batch_size=100, sampler=sampler)
    net = nn.Sequential(nn.Conv2d(3, 32, 3), nn.ReLU(), nn.Flatten(), nn.Linear(28800, 10))
    net = DistributedDataParallel(net.to(device), device_ids=[device])
    optimizer = torch.optim.SGD(net.parameters(), 0.05)
    for epoch in range(5):
        sampler.set_epoch(epoch)
        for image, label in loader:
            loss = nn.functional.cross_entropy(net(image.to(device)), label.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            torch.save(net.module.state_dict(), f"noise_{epoch}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
