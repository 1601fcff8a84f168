"""Rank 0 alone loads the weights after DDP was built."""
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from reid import Market, ReIDNet


class Solver:
    def __init__(self, opt):
        self.opt = opt
        self.rank = dist.get_rank()
        self.local_rank = int(os.environ["LOCAL_RANK"])
        self.model = DDP(ReIDNet().cuda(), device_ids=[self.local_rank])
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=opt["lr"])
        if opt["resume"] and self.rank == 0:
            state = torch.load(opt["resume"], map_location="cpu")
            self.model.module.load_state_dict(state)  # expect: DDP027
        self.data = Market(opt["root"])
        self.sampler = DistributedSampler(self.data)
        self.loader = DataLoader(self.data, opt["batch"], sampler=self.sampler, num_workers=4)

    def train(self):
        for epoch in range(self.opt["epochs"]):
            self.sampler.set_epoch(epoch)
            for image, label in self.loader:
                loss = F.cross_entropy(self.model(image.cuda()), label.cuda())
                self.optimizer.zero_grad()
                loss.backward()
                if self.rank == 0:
                    self.optimizer.step()  # expect: DDP027


if __name__ == "__main__":
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    Solver({"lr": 1e-3, "resume": "", "root": "market", "batch": 64, "epochs": 60}).train()
    dist.destroy_process_group()
