"""Horovod is started and shards the data, but the optimizer stays a plain one."""
import horovod.torch as hvd
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Solver:
    def __init__(self, model):
        self.model = model.cuda()
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.01 * hvd.size())  # expect: HVD001
        hvd.broadcast_parameters(self.model.state_dict(), root_rank=0)
        hvd.broadcast_optimizer_state(self.optimizer, root_rank=0)

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            loader.sampler.set_epoch(epoch)
            for x, y in loader:
                self.optimizer.zero_grad()
                nn.functional.mse_loss(self.model(x.cuda()), y.cuda()).backward()
                self.optimizer.step()
        if hvd.rank() == 0:
            torch.save(self.model.state_dict(), "solved.pt")


def main():
    hvd.init()
    torch.cuda.set_device(hvd.local_rank())
    data = TensorDataset(torch.randn(4096, 6), torch.randn(4096, 1))
    sampler = DistributedSampler(data, num_replicas=hvd.size(), rank=hvd.rank())
    Solver(nn.Linear(6, 1)).fit(DataLoader(data, 64, sampler=sampler), 10)


if __name__ == "__main__":
    main()
