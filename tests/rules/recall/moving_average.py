"""An average of the weights kept on one rank and copied back into the model there."""
import copy
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from galaxies import Galaxies, GalaxyNet


def main():
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    gpu = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(gpu)
    net = GalaxyNet().cuda()
    ema = copy.deepcopy(net)
    net = DDP(net, device_ids=[gpu])
    galaxies = Galaxies()
    sampler = DistributedSampler(galaxies)
    loader = DataLoader(galaxies, 64, sampler=sampler, num_workers=4)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for epoch in range(30):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = nn.functional.cross_entropy(net(x.cuda()), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                for a, b in zip(ema.parameters(), net.module.parameters()):
                    a.mul_(0.999).add_(b, alpha=0.001)
        if rank == 0 and epoch % 10 == 9:
            net.module.load_state_dict(ema.state_dict())  # expect: DDP027
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
