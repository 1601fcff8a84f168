"""The wrapper is built before the process group exists; the group is made twice."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from pendulum import trajectories


class Experiment:
    def __init__(self):
        self.rank = dist.get_rank()  # expect: DDP005
        self.model = nn.GRU(4, 32, batch_first=True)

    def setup(self):
        dist.init_process_group("nccl")
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        self.model = DDP(self.model.cuda(), device_ids=[int(os.environ["LOCAL_RANK"])])
        self.optimizer = torch.optim.Adam(self.model.parameters())

    def run(self):
        for x, y in trajectories(seed=self.rank):
            out, _ = self.model(x.cuda())
            loss = nn.functional.mse_loss(out, y.cuda())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


if __name__ == "__main__":
    experiment = Experiment()
    experiment.setup()
    experiment.run()
    dist.destroy_process_group()
