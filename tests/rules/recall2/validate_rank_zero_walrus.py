"""Super resolution; only the first rank validates."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Upscale(nn.Module):
    def __init__(self, channels=64, blocks=8):
        super().__init__()
        self.head = nn.Conv2d(3, channels, 3, padding=1)
        self.body = nn.Sequential(*[
            nn.Sequential(nn.Conv2d(channels, channels, 3, padding=1),
                          nn.BatchNorm2d(channels), nn.PReLU()) for _ in range(blocks)])
        self.tail = nn.Sequential(nn.Conv2d(channels, 12, 3, padding=1), nn.PixelShuffle(2))

    def forward(self, x):
        return self.tail(self.body(self.head(x)))


def psnr(a, b):
    return -10 * torch.log10((a - b).square().mean())


def validate(model, loader, device):
    model.eval()
    total = 0.0
    with torch.no_grad():
        for low, high in loader:
            total += psnr(model(low.to(device)), high.to(device)).item()
    model.train()
    return total / len(loader)


def validate_alone(model, loader, device):
    inner = model.module.eval()
    with torch.no_grad():
        scores = [psnr(inner(low.to(device)), high.to(device)) for low, high in loader]
    inner.train()
    return torch.stack(scores).mean().item()


def main():
    dist.init_process_group("nccl")
    device = torch.device("cuda", local := int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    train = TensorDataset(*torch.load("train.pt", map_location="cpu"))
    val = TensorDataset(*torch.load("val.pt", map_location="cpu"))
    loader = DataLoader(train, 16, sampler=(sampler := DistributedSampler(train)))
    val_loader = DataLoader(val, 1)
    model = DDP(Upscale().to(device), device_ids=[local])
    optimizer = torch.optim.Adam(model.parameters(), 1e-4)
    best = 0.0
    for epoch in range(100):
        sampler.set_epoch(epoch)
        for low, high in loader:
            optimizer.zero_grad()
            nn.functional.l1_loss(model(low.to(device)), high.to(device)).backward()
            optimizer.step()
        if (rank := dist.get_rank()) == 0:
            if (score := validate(model, val_loader, device)) > best:  # expect: DDP013
                best = score
                torch.save(model.module.state_dict(), "upscale.pt")
            print(rank, epoch, score, validate_alone(model, val_loader, device))
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
