"""Speech recognition with CTC; a typer application with a Recipe class."""
from __future__ import annotations

import math
import os
from contextlib import nullcontext
from typing import Iterator

import torch
import torch.distributed as dist
import torchaudio
import typer
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

app = typer.Typer()


class Acoustic(nn.Module):
    def __init__(self, bins: int = 80, letters: int = 29) -> None:
        super().__init__()
        self.front = nn.Conv1d(bins, 256, 3, stride=2, padding=1)
        self.norm = nn.LayerNorm(256)
        self.gru = nn.GRU(256, 256, 3, bidirectional=True, batch_first=True)
        self.letters = nn.Linear(512, letters)

    def forward(self, features: Tensor) -> Tensor:
        hidden = self.norm(self.front(features).transpose(1, 2))
        return self.letters(self.gru(hidden)[0]).log_softmax(-1)


class Recipe:
    def __init__(self, root: str, accum: int, local: int) -> None:
        self.local = local
        self.accum = accum
        self.set = torchaudio.datasets.LIBRISPEECH(root)
        self.sampler = DistributedSampler(self.set, shuffle=True)
        self.loader = DataLoader(self.set, 8, sampler=self.sampler, num_workers=2)
        self.model = DDP(Acoustic().to(local), device_ids=[local])
        self.criterion = nn.CTCLoss(zero_infinity=True)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 1e-3)
        self.scaler = torch.amp.GradScaler("cuda")

    def batches(self, epoch: int) -> Iterator[tuple[Tensor, ...]]:
        self.sampler.set_epoch(epoch)
        for batch in self.loader:
            yield tuple(each.to(self.local) for each in batch)

    def epoch(self, epoch: int) -> None:
        self.model.train()
        for step, (features, lengths, text, text_lengths) in enumerate(self.batches(epoch)):
            last = (step + 1) % self.accum == 0 or step + 1 == len(self.loader)
            with nullcontext() if last else self.model.no_sync():
                with torch.autocast("cuda"):
                    out = self.model(features)
                loss = self.criterion(out.transpose(0, 1).float(), text, lengths, text_lengths)
                if not math.isfinite(loss.item()):
                    print("skipping a batch with", loss.item())
                    continue  # expect: DDP015
                self.scaler.scale(loss / self.accum).backward()
            if last:
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)  # expect: DDP046
                self.scaler.step(self.optimizer)
                self.scaler.update()
                self.optimizer.zero_grad()


@app.command()
def train(root: str, epochs: int = 20, accum: int = 4) -> None:
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    dist.init_process_group("nccl")
    recipe = Recipe(root, accum, local)
    for epoch in range(epochs):
        recipe.epoch(epoch)
        if dist.get_rank() == 0:
            torch.save(recipe.model.module.state_dict(), f"acoustic-{epoch}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    app()
