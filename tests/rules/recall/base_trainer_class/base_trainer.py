"""A base class that owns the device and the loop over epochs."""
import os

import torch
import torch.distributed as dist


class BaseTrainer:
    def __init__(self, model, config):
        self.config = config
        self.local_rank = int(os.environ["LOCAL_RANK"])
        torch.cuda.set_device(self.local_rank)
        model = model.cuda(self.local_rank)
        self.model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[self.local_rank])
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=config["lr"])
        self.best = 0.0

    def train(self):
        for epoch in range(self.config["epochs"]):
            self._train_epoch(epoch)
            score = self._valid_epoch(epoch)
            self._save_checkpoint(epoch, score)

    def _train_epoch(self, epoch):
        raise NotImplementedError

    def _valid_epoch(self, epoch):
        raise NotImplementedError

    def _save_checkpoint(self, epoch, score):
        state = {"epoch": epoch, "state_dict": self.model.module.state_dict()}
        torch.save(state, os.path.join(self.config["save_dir"], "latest.pth"))  # expect: DDP039
        if score > self.best and dist.get_rank() == 0:
            self.best = score
            torch.save(state, os.path.join(self.config["save_dir"], "best.pth"))
