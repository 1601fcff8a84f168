"""A GAN with two wrapped networks, started with torchrun."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from torchvision import datasets, transforms
from torchvision.utils import save_image

Z = 128


def generator():
    return nn.Sequential(nn.Linear(Z, 1024), nn.LeakyReLU(0.2), nn.Linear(1024, 784), nn.Tanh())


def discriminator():
    return nn.Sequential(nn.Linear(784, 512), nn.LeakyReLU(0.2), nn.Linear(512, 1))


class Perceptual(nn.Module):
    def __init__(self):
        super().__init__()
        self.filters = nn.Conv2d(1, 16, 5).requires_grad_(False)

    def forward(self, a, b):
        a, b = a.view(-1, 1, 28, 28), b.view(-1, 1, 28, 28)
        return (self.filters(a) - self.filters(b)).abs().mean()


def main():
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    dist.init_process_group("nccl")
    g = DDP(generator().cuda(), device_ids=[local])
    d = DDP(discriminator().cuda(), device_ids=[local])
    perceptual = Perceptual().cuda()
    g_opt = torch.optim.Adam(g.parameters(), 2e-4, betas=(0.5, 0.999))
    d_opt = torch.optim.Adam(d.parameters(), 2e-4, betas=(0.5, 0.999))
    data = datasets.MNIST("mnist", transform=transforms.ToTensor())
    sampler = DistributedSampler(data, shuffle=True)
    loader = DataLoader(data, 128, sampler=sampler, drop_last=True)
    bce = nn.functional.binary_cross_entropy_with_logits

    for epoch in range(60):
        sampler.set_epoch(epoch)
        for real, _ in loader:
            real = real.view(-1, 784).cuda() * 2 - 1
            noise = torch.randn(real.size(0), Z, device=local)
            fake = g(noise)

            score = d(torch.cat([real, fake.detach()]))
            d_opt.zero_grad()
            truth = torch.zeros_like(score)
            truth[: real.size(0)] = 0.9
            bce(score, truth).backward()
            d_opt.step()

            g_opt.zero_grad()
            adversarial = bce(d(fake), torch.ones(real.size(0), 1, device=local))
            adversarial.backward(retain_graph=True)
            likeness = perceptual(fake, real)
            likeness.backward()  # expect: DDP008
            g_opt.step()
        if dist.get_rank() == 0:
            with torch.no_grad():
                sample = g.module(torch.randn(64, Z, device=local))
            save_image(sample.view(-1, 1, 28, 28), f"{epoch:03d}.png")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
