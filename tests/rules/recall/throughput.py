"""Images per second measured without synchronising or warming up."""
import os
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torchvision.models import resnet50

dist.init_process_group("nccl")
local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
model = DDP(resnet50().cuda(), device_ids=[local_rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batch = torch.randn(64, 3, 224, 224, device="cuda")
target = torch.randint(0, 1000, (64,), device="cuda")
iterations = 50

start = time.time()  # expect: DDP036
for _ in range(iterations):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(batch), target)
    loss.backward()
    optimizer.step()
elapsed = time.time() - start
if dist.get_rank() == 0:
    print("images/s", iterations * 64 * dist.get_world_size() / elapsed)
dist.destroy_process_group()
