"""Every rank downloads and unpacks the same archive; one of two folders is made by the first."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from torchvision import datasets, transforms


class Run:
    def __init__(self, root="data", epochs=5):
        self.local = int(os.environ["LOCAL_RANK"])
        torch.cuda.set_device(self.local)
        dist.init_process_group("nccl")
        self.epochs = epochs
        if dist.get_rank() == 0 and not os.path.exists("logs"):
            os.makedirs("logs")
        data = datasets.CIFAR100(root, download=True,  # expect: DDP026
                                 transform=transforms.ToTensor())
        self.sampler = DistributedSampler(data)
        self.loader = DataLoader(data, 128, sampler=self.sampler)
        net = nn.Sequential(nn.Flatten(), nn.Linear(3072, 100)).cuda()
        self.net = DDP(net, device_ids=[self.local])
        self.optimizer = torch.optim.SGD(self.net.parameters(), 0.1)

    def one_epoch(self, epoch):
        self.sampler.set_epoch(epoch)
        for x, y in self.loader:
            self.optimizer.zero_grad()
            nn.functional.cross_entropy(self.net(x.cuda()), y.cuda()).backward()
            self.optimizer.step()

    def __call__(self):
        for epoch in range(self.epochs):
            self.one_epoch(epoch)
            if dist.get_rank() == 0:
                torch.save(self.net.module.state_dict(), f"logs/{epoch}.pt")
        dist.barrier()
        dist.destroy_process_group()


if __name__ == "__main__":
    Run()()
