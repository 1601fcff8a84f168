"""Forward under no_sync, backward outside it."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from corpus import Sentences


class Runner(object):
    def __init__(self, net, loader, sampler, steps):
        self.rank = int(os.environ["LOCAL_RANK"])
        self.net = DDP(net.to(self.rank), device_ids=[self.rank])
        self.loader = loader
        self.sampler = sampler
        self.steps = steps
        self.optim = torch.optim.Adam(self.net.parameters(), lr=1e-4)
        self.loss = nn.CrossEntropyLoss()

    def fit(self, epochs):
        for epoch in range(epochs):
            self.sampler.set_epoch(epoch)
            for i, (x, y) in enumerate(self.loader):
                x, y = x.to(self.rank), y.to(self.rank)
                if (i + 1) % self.steps != 0 and i + 1 != len(self.loader):
                    with self.net.no_sync():  # expect: DDP009
                        loss = self.loss(self.net(x), y)
                    loss.backward()
                else:
                    self.loss(self.net(x), y).backward()
                    self.optim.step()
                    self.optim.zero_grad()


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    data = Sentences("wiki.txt")
    sampler = DistributedSampler(data)
    loader = DataLoader(data, 32, sampler=sampler, num_workers=2)
    Runner(nn.LSTM(300, 300), loader, sampler, 4).fit(10)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
