"""A GAN with two DDP models: the sampler's epoch is never set and all ranks write samples."""
import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils import data
from torchvision import datasets, transforms, utils

from networks import Discriminator, Generator


def requires_grad(model, flag=True):
    for p in model.parameters():
        p.requires_grad = flag


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("path")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--batch", type=int, default=16)
    args = parser.parse_args()
    gpu = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(gpu)
    dist.init_process_group(backend="nccl", init_method="env://")
    device = "cuda"

    generator = Generator(512).to(device)
    discriminator = Discriminator().to(device)
    g_optim = torch.optim.Adam(generator.parameters(), 2e-3, betas=(0.0, 0.99))
    d_optim = torch.optim.Adam(discriminator.parameters(), 2e-3, betas=(0.0, 0.99))
    generator = DDP(generator, device_ids=[gpu], broadcast_buffers=False)
    discriminator = DDP(discriminator, device_ids=[gpu], broadcast_buffers=False)
    dataset = datasets.ImageFolder(args.path, transforms.ToTensor())
    sampler = data.distributed.DistributedSampler(dataset, shuffle=True)
    loader = data.DataLoader(dataset, batch_size=args.batch, sampler=sampler, drop_last=True,
                             num_workers=4)
    fixed = torch.randn(16, 512, device=device)
    for epoch in range(args.epochs):  # expect: DDP018
        for real, _ in loader:
            real = real.to(device)
            noise = torch.randn(args.batch, 512, device=device)
            fake = generator(noise)
            d_loss = nn.functional.softplus(discriminator(fake.detach())).mean()
            d_loss = d_loss + nn.functional.softplus(-discriminator(real)).mean()
            discriminator.zero_grad()
            d_loss.backward()
            d_optim.step()
            g_loss = nn.functional.softplus(-discriminator(generator(noise))).mean()
            generator.zero_grad()
            g_loss.backward()
            g_optim.step()
        if dist.get_rank() == 0:
            with torch.no_grad():
                utils.save_image(generator.module(fixed), f"sample/{epoch:06d}.png")
        torch.save({"g": generator.module.state_dict(),  # expect: DDP039
                    "d": discriminator.module.state_dict()}, f"checkpoint/{epoch:06d}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
