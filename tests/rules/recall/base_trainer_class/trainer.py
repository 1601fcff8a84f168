"""The concrete trainer."""
import json
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from base_trainer import BaseTrainer
from net import Net, Samples


class Trainer(BaseTrainer):
    def __init__(self, model, config):
        super().__init__(model, config)
        data = Samples(config["root"])
        self.sampler = DistributedSampler(data)
        self.data_loader = DataLoader(data, config["batch_size"], sampler=self.sampler,
                                      num_workers=4)
        self.valid_loader = DataLoader(Samples(config["valid"]), config["batch_size"])

    def _train_epoch(self, epoch):
        self.sampler.set_epoch(epoch)
        self.model.train()
        for data, target in self.data_loader:
            data, target = data.cuda(), target.cuda()
            self.optimizer.zero_grad()
            loss = F.cross_entropy(self.model(data), target)
            loss.backward()
            self.optimizer.step()

    def _valid_epoch(self, epoch):
        self.model.eval()
        hits = 0
        with torch.no_grad():
            for data, target in self.valid_loader:
                hits += (self.model(data.cuda()).argmax(1) == target.cuda()).sum().item()
        return hits


if __name__ == "__main__":
    dist.init_process_group("nccl")
    with open(sys.argv[1]) as file:
        Trainer(Net(), json.load(file)).train()
    dist.destroy_process_group()
