"""A language model whose options live in a dataclass."""
import os
from dataclasses import dataclass, field

import torch
import torch.nn as nn
from torch.distributed import destroy_process_group, get_rank, get_world_size, init_process_group
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


@dataclass
class OptimConfig:
    lr: float = 6e-4
    decay: float = 0.1
    accum: int = 40


@dataclass
class TrainConfig:
    total_batch_size: int = 500
    block: int = 256
    layers: int = 6
    epochs: int = 3
    optim: OptimConfig = field(default_factory=OptimConfig)


class Blocks(Dataset):
    def __init__(self, path: str, block: int):
        self.tokens = torch.load(path, map_location="cpu", mmap=True)
        self.block = block

    def __len__(self):
        return len(self.tokens) // self.block

    def __getitem__(self, i):
        piece = self.tokens[i * self.block:(i + 1) * self.block]
        return piece[:-1], piece[1:]


class Language(nn.Module):
    def __init__(self, cfg: TrainConfig):
        super().__init__()
        self.words = nn.Embedding(50304, 384)
        self.places = nn.Embedding(cfg.block, 384)
        layer = nn.TransformerEncoderLayer(384, 6, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, cfg.layers)
        self.out = nn.Linear(384, 50304, bias=False)

    def forward(self, ids):
        places = torch.arange(ids.size(1), device=ids.device)
        return self.out(self.blocks(self.words(ids) + self.places(places)))


def main(cfg: TrainConfig):
    init_process_group("nccl")
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    world = get_world_size()
    batch = cfg.total_batch_size // world  # expect: DDP043
    assert cfg.optim.accum % world == 0
    accum = cfg.optim.accum // world
    data = Blocks("train.pt", cfg.block)
    sampler = DistributedSampler(data, drop_last=True)
    loader = DataLoader(data, batch_size=batch, sampler=sampler)
    model = DDP(Language(cfg).cuda(local), device_ids=[local])
    optimizer = torch.optim.AdamW(model.parameters(), cfg.optim.lr, weight_decay=cfg.optim.decay)
    for epoch in range(cfg.epochs):
        loader.sampler.set_epoch(epoch)
        for i, (ids, target) in enumerate(loader):
            logits = model(ids.cuda(local))
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten().cuda(local))
            (loss / accum).backward()
            if (i + 1) % accum == 0:  # expect: DDP010
                optimizer.step()
                optimizer.zero_grad()
    if get_rank() == 0:
        torch.save(model.module.state_dict(), "language.pt")
    destroy_process_group()


if __name__ == "__main__":
    main(TrainConfig())
