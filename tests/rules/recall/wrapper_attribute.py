"""Uses the inner model's methods on the wrapper and pickles the wrapper."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from mnist import Digits


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(784, 40)
        self.dec = nn.Linear(20, 784)

    def encode(self, x):
        return self.enc(x).chunk(2, dim=-1)

    def decode(self, z):
        return torch.sigmoid(self.dec(z))

    def forward(self, x):
        mu, logvar = self.encode(x)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.decode(z), mu, logvar


def main():
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    gpu = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(gpu)
    vae = DDP(VAE().cuda(gpu), device_ids=[gpu])
    digits = Digits()
    sampler = DistributedSampler(digits)
    loader = DataLoader(digits, 128, sampler=sampler, num_workers=2)
    optimizer = torch.optim.Adam(vae.parameters(), 1e-3)
    for epoch in range(20):
        sampler.set_epoch(epoch)
        for x, _ in loader:
            x = x.cuda(gpu).flatten(1)
            out, mu, logvar = vae(x)
            loss = nn.functional.binary_cross_entropy(out, x)
            loss = loss - 0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            with torch.no_grad():
                picture = vae.decode(torch.randn(16, 20, device=gpu))  # expect: DDP012
            torch.save(picture.cpu(), f"picture{epoch}.pt")
    if rank == 0:
        torch.save(vae, "vae.pt")  # expect: DDP012
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
