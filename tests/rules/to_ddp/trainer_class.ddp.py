import torch.distributed as torch_dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler
import os

import torch
from torch.nn import DataParallel, Linear, MSELoss
from torch.utils.data import DataLoader, TensorDataset

local_rank = int(os.environ.get("LOCAL_RANK", 0))


class Trainer:
    def __init__(self, data, gpu_ids, epochs):
        self.device = f"cuda:{local_rank}"
        self.epochs = epochs
        self.model = self.build(gpu_ids)
        self.loader = DataLoader(data, 16 // torch_dist.get_world_size(), sampler=DistributedSampler(data))
        self.optimizer = torch.optim.Adam(self.model.parameters())
        self.criterion = MSELoss()

    def build(self, gpu_ids):
        model = Linear(4, 1).to(local_rank)
        return DistributedDataParallel(model.to(local_rank), device_ids=[local_rank])

    def fit(self):
        for epoch in range(self.epochs):
            self.loader.sampler.set_epoch(epoch)
            for inputs, targets in self.loader:
                self.optimizer.zero_grad()
                outputs = self.model(inputs.to(self.device))
                self.criterion(outputs, targets.to(self.device)).backward()
                self.optimizer.step()


def run():
    dist = 4  # features
    data = TensorDataset(torch.randn(64, dist), torch.randn(64, 1))
    torch.cuda.set_device(local_rank)
    torch_dist.init_process_group("nccl")
    trainer = Trainer(data, [0, 1], epochs=2)
    trainer.fit()


if __name__ == "__main__":
    run()
    torch_dist.destroy_process_group()
