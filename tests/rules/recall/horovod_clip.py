"""Clipping before the reduction, and a sampler that is not told the rank."""
import horovod.torch as hvd
import torch
import torch.nn as nn
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from poems import Poems, PoemModel

hvd.init()
torch.cuda.set_device(hvd.local_rank())
poems = Poems()
sampler = DistributedSampler(poems)  # expect: HVD002
loader = DataLoader(poems, batch_size=32, sampler=sampler, num_workers=2)
model = PoemModel().cuda()
optimizer = hvd.DistributedOptimizer(torch.optim.Adam(model.parameters(), 1e-3 * hvd.size()),
                                     named_parameters=model.named_parameters())
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)
for epoch in range(30):
    sampler.set_epoch(epoch)
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x.cuda()).flatten(0, 1), y.cuda().flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)  # expect: HVD003
        optimizer.step()
