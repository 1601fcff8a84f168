"""A GPT-like model whose loss method is reached through .module."""
import math
import os
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


@dataclass
class Config:
    block: int = 256
    vocab: int = 50304
    width: int = 384
    layers: int = 6


class Decoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.tokens = nn.Embedding(config.vocab, config.width)
        self.positions = nn.Embedding(config.block, config.width)
        layer = nn.TransformerEncoderLayer(config.width, 6, batch_first=True)
        self.blocks = nn.TransformerEncoder(layer, config.layers)
        self.out = nn.Linear(config.width, config.vocab, bias=False)

    def forward(self, idx):
        pos = torch.arange(idx.size(1), device=idx.device)
        return self.out(self.blocks(self.tokens(idx) + self.positions(pos)))

    def compute_loss(self, idx, targets):
        logits = self(idx)
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))


def get_lr(it):
    return 6e-4 * 0.5 * (1.0 + math.cos(math.pi * min(1.0, it / 10000)))


ddp_rank = int(os.environ["RANK"])
ddp_local_rank = int(os.environ["LOCAL_RANK"])
device = f"cuda:{ddp_local_rank}"
torch.cuda.set_device(device)
dist.init_process_group(backend="nccl")
model = Decoder(Config()).to(device)
model = DDP(model, device_ids=[ddp_local_rank])
optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4)
data = torch.load("tokens.pt", map_location="cpu")
generator = torch.Generator().manual_seed(1337 + ddp_rank)

for it in range(10000):
    start = torch.randint(len(data) - 257, (12,), generator=generator)
    x = torch.stack([data[s:s + 256] for s in start]).to(device)
    y = torch.stack([data[s + 1:s + 257] for s in start]).to(device)
    for group in optimizer.param_groups:
        group["lr"] = get_lr(it)
    loss = model.module.compute_loss(x, y)  # expect: DDP007
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
