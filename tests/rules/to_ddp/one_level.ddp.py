"""A classifier at the script's own level: the first thing that people write."""
import os
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

local_rank = int(os.environ.get("LOCAL_RANK", 0))

torch.manual_seed(0)
device = torch.device("cuda", local_rank)
examples = TensorDataset(torch.randn(64, 8), torch.randint(0, 3, (64,)))
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
loader = DataLoader(examples, batch_size=16 // dist.get_world_size(), sampler=DistributedSampler(examples))

model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
model = DistributedDataParallel(model.to(local_rank), device_ids=[local_rank]).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for epoch in range(2):
    loader.sampler.set_epoch(epoch)
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
if dist.get_rank() == 0:
    torch.save(model.module.state_dict(), "classifier.pt")
dist.destroy_process_group()
