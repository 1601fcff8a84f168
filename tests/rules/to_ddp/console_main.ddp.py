# A console script of the package calls main(): nothing here runs by itself.
import os
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler
import torch
from torch import nn
from torch.utils.data import DataLoader

ddp_local_rank = int(os.environ.get("LOCAL_RANK", 0))


class Trainer:
    def __init__(self, model, data):
        self.wrap(model)
        self.loader = DataLoader(data, batch_size=32 // dist.get_world_size(), sampler=DistributedSampler(data))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def wrap(self, model):
        local_rank = 0  # of a launcher that is gone
        self.model = DistributedDataParallel(model.cuda(ddp_local_rank).to(ddp_local_rank), device_ids=[ddp_local_rank])

    def epoch(self):
        for inputs, labels in self.loader:
            self.optimizer.zero_grad()
            nn.functional.cross_entropy(self.model(inputs), labels).backward()
            self.optimizer.step()


def main():
    torch.cuda.set_device(ddp_local_rank)
    dist.init_process_group("nccl")
    Trainer(nn.Linear(4, 2), torch.load("data.pt")).epoch()
