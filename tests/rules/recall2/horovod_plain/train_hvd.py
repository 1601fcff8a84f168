"""Linear regression with Horovod."""
import argparse

import horovod.torch as hvd
import torch
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=1)
opt = parser.parse_args()

hvd.init()  # expect: HVD004
torch.cuda.set_device(hvd.local_rank())
data = TensorDataset(torch.randn(4096, 32), torch.randn(4096, 1))
sampler = DistributedSampler(data, num_replicas=hvd.size(), rank=hvd.rank())
loader = DataLoader(data, batch_size=64, sampler=sampler)
model = torch.nn.Linear(32, 1).cuda()
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01 * hvd.size())
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
hvd.broadcast_optimizer_state(optimizer, root_rank=0)
for epoch in range(opt.epochs):
    sampler.set_epoch(epoch)
    for x, y in loader:
        optimizer.zero_grad()
        (model(x.cuda()) - y.cuda()).pow(2).mean().backward()
        optimizer.step()
