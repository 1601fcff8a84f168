"""Pre-training on a stream of text files."""
import glob
import os
import random

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Everything(IterableDataset):
    """Each rank reads all files."""

    def __init__(self, pattern, block=128):
        self.files = sorted(glob.glob(pattern))
        self.block = block

    def __iter__(self):
        for name in self.files:
            ids = torch.load(name, map_location="cpu")
            for start in range(0, len(ids) - self.block, self.block):
                yield ids[start:start + self.block]


class Share(Everything):
    """Each worker of each rank reads files of its own, the same number of blocks in all."""

    def __init__(self, pattern, blocks, block=128):
        super().__init__(pattern, block)
        self.blocks = blocks

    def __iter__(self):
        info = get_worker_info()
        workers = info.num_workers if info else 1
        at = dist.get_rank() * workers + (info.id if info else 0)
        mine = self.files[at::dist.get_world_size() * workers]
        sent = 0
        while sent < self.blocks:
            ids = torch.load(random.choice(mine), map_location="cpu")
            start = random.randrange(len(ids) - self.block)
            yield ids[start:start + self.block]
            sent += 1


class Model(nn.Module):
    def __init__(self, words=32000, width=512):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.cell = nn.GRU(width, width, 2, batch_first=True)
        self.out = nn.Linear(width, words)

    def forward(self, ids):
        return self.out(self.cell(self.words(ids))[0])


def main():
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    dist.init_process_group("nccl")
    source = Everything("shards/*.pt")
    loader = DataLoader(source, batch_size=32, num_workers=2)  # expect: DDP017
    extra = DataLoader(Share("extra/*.pt", 1000), batch_size=32)
    model = DDP(Model().cuda(), device_ids=[local])
    optimizer = torch.optim.AdamW(model.parameters(), 3e-4)
    for stage in (extra, loader):
        for ids in stage:
            ids = ids.cuda()
            logits = model(ids[:, :-1])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    if dist.get_rank() == 0:
        torch.save(model.module.state_dict(), "pretrained.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
