"""Fine-tunes a text encoder; options come through click."""
import os
from pathlib import Path

import click
import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler, random_split


class Reviews(Dataset):
    def __init__(self, path: Path, length: int = 128) -> None:
        self.rows = [line.split("\t") for line in path.read_text().splitlines()]
        self.length = length

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int):
        ids = [int(word) for word in self.rows[index][0].split()][: self.length]
        ids += [0] * (self.length - len(ids))
        return torch.tensor(ids), int(self.rows[index][1])


class Encoder(nn.Module):
    def __init__(self, words: int, width: int = 256) -> None:
        super().__init__()
        self.table = nn.Embedding(words, width)
        layer = nn.TransformerEncoderLayer(width, 4, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 4)
        self.head = nn.Linear(width, 2)

    def forward(self, ids):
        return self.head(self.body(self.table(ids)).mean(1))


def split(dataset):
    held_out = len(dataset) // 10
    return random_split(dataset, [len(dataset) - held_out, held_out])  # expect: DDP035


def split_for_probe(dataset):
    generator = torch.Generator().manual_seed(11)
    return random_split(dataset, [0.5, 0.5], generator=generator)


@click.command()
@click.argument("corpus", type=click.Path(path_type=Path, exists=True))
@click.option("--epochs", default=5, show_default=True)
@click.option("--batch", default=32, help="sequences per process")
@click.option("--lr", default=3e-4)
def main(corpus: Path, epochs: int, batch: int, lr: float) -> None:
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    distributed.init_process_group(backend="nccl")
    first = distributed.get_rank() == 0
    train, valid = split(Reviews(corpus))
    train_sampler = DistributedSampler(train, seed=3)
    train_loader = DataLoader(train, batch, sampler=train_sampler)
    valid_sampler = DistributedSampler(valid, shuffle=False)
    valid_loader = DataLoader(valid, batch, sampler=valid_sampler)

    model = DDP(Encoder(30000).to(local), device_ids=[local], output_device=local)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    for epoch in range(epochs):  # expect: DDP018
        model.train()
        for ids, label in train_loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(ids.to(local)), label.to(local))
            loss.backward()
            optimizer.step()
        model.eval()
        counts = torch.zeros(2, device=local)
        with torch.no_grad():
            for ids, label in valid_loader:
                guess = model(ids.to(local)).argmax(-1)
                counts[0] += (guess == label.to(local)).sum()
                counts[1] += len(label)
        distributed.all_reduce(counts)
        if first:
            click.echo(f"{epoch}: {(counts[0] / counts[1]).item():.4f}")
            torch.save(model.module.state_dict(), corpus.with_suffix(".pt"))
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
