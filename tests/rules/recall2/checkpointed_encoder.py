"""A deep encoder with activation checkpointing and an output class of its own."""
import os
from dataclasses import dataclass
from functools import partial

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils import checkpoint as cp
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Encoded:
    def __init__(self, logits, hidden):
        self.logits = logits
        self.hidden = hidden


@dataclass
class Decoded:
    logits: Tensor
    hidden: Tensor


class Layer(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(),
                                   nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.inner(x)


class Encoder(nn.Module):
    def __init__(self, width: int = 256, depth: int = 24) -> None:
        super().__init__()
        self.embed = nn.Linear(64, width)
        self.layers = nn.ModuleList(Layer(width) for _ in range(depth))
        self.out = nn.Linear(width, 10)

    def forward(self, x: Tensor):
        x = self.embed(x)
        for layer in self.layers:
            x = cp.checkpoint(layer, x)  # expect: DDP028
        return Encoded(self.out(x), x)  # expect: DDP031


class Decoder(nn.Module):
    def __init__(self, width: int = 256, depth: int = 4) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer(width) for _ in range(depth))
        self.out = nn.Linear(width, 64)

    def forward(self, x: Tensor) -> Decoded:
        run = partial(cp.checkpoint, use_reentrant=False)
        for layer in self.layers:
            x = run(layer, x)
        return Decoded(self.out(x), x)


def main() -> None:
    dist.init_process_group("nccl")
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    encoder = DDP(Encoder().cuda(), device_ids=[local], find_unused_parameters=True)
    decoder = DDP(Decoder().cuda(), device_ids=[local])
    optimizer = torch.optim.AdamW([*encoder.parameters(), *decoder.parameters()], 1e-4)
    data = TensorDataset(torch.randn(4096, 64), torch.randint(10, (4096,)))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, 32, sampler=sampler)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x, y in loader:
            x, y = x.cuda(), y.cuda()
            encoded = encoder(x)
            decoded = decoder(encoded.hidden)
            loss = nn.functional.cross_entropy(encoded.logits, y)
            loss = loss + (decoded.logits - x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
