"""The Trainer: one process a GPU, started by torchrun."""
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

import builders


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        self.setup()
        self.train_loader = builders.build_loader(cfg["data"], "train")
        self.val_loader = builders.build_loader(cfg["data"], "val")
        model = builders.build_model(cfg["model"]).to(self.device)
        self.optimizer = builders.build_optimizer(model, cfg["schedule"])
        self.model = DDP(model, device_ids=[self.local_rank])
        self.best = 0.0

    def setup(self):
        self.local_rank = int(os.environ["LOCAL_RANK"])
        self.device = torch.device(f"cuda:{self.local_rank}")
        torch.cuda.set_device(self.device)
        dist.init_process_group("nccl")
        self.rank = dist.get_rank()

    def fit(self):
        for epoch in range(self.cfg["schedule"]["epochs"]):  # expect: DDP018
            self.train_one_epoch()
            accuracy = self.evaluate()
            if accuracy > self.best:
                self.best = accuracy
                if self.rank == 0:
                    self.save("best.pt")
                    dist.barrier()  # expect: DDP014

    def train_one_epoch(self):
        self.model.train()
        for image, label in self.train_loader:
            image, label = image.to(self.device), label.to(self.device)
            loss = torch.nn.functional.cross_entropy(self.model(image), label)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        tally = torch.zeros(2, device=self.device)
        for image, label in self.val_loader:
            guess = self.model(image.to(self.device)).argmax(1)
            tally += torch.stack([(guess == label.to(self.device)).sum(),
                                  torch.tensor(len(label), device=self.device)])
        dist.all_reduce(tally)
        return (tally[0] / tally[1]).item()

    def save(self, name):
        torch.save({"model": self.model.module.state_dict()}, name)

    def close(self):
        dist.barrier()
        dist.destroy_process_group()
