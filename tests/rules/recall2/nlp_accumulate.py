"""Machine translation with accumulation and mixed precision."""
import argparse
import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.cuda.amp import GradScaler, autocast
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.nn.utils import clip_grad_norm_
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

PAD = 0


class Pairs(Dataset):
    def __init__(self, prefix):
        with open(prefix + ".src") as source, open(prefix + ".tgt") as target:
            self.pairs = [(self.ids(a), self.ids(b)) for a, b in zip(source, target)]

    @staticmethod
    def ids(line):
        return torch.tensor([int(word) for word in line.split()])

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, index):
        return self.pairs[index]


def pad(batch):
    source, target = zip(*batch)
    return (pad_sequence(source, batch_first=True, padding_value=PAD),
            pad_sequence(target, batch_first=True, padding_value=PAD))


class Translator(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.words = nn.Embedding(words, width, padding_idx=PAD)
        self.core = nn.Transformer(width, 8, 6, 6, batch_first=True)
        self.out = nn.Linear(width, words)

    def forward(self, source, target):
        mask = self.core.generate_square_subsequent_mask(target.size(1), device=target.device)
        return self.out(self.core(self.words(source), self.words(target), tgt_mask=mask))


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--accumulate", type=int, default=8)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--max-hours", type=float, default=None)
    return parser.parse_args()


def main():
    args = get_args()
    local_rank = int(os.environ.get("LOCAL_RANK", 0))
    torch.cuda.set_device(local_rank)
    dist.init_process_group(backend="nccl", init_method="env://")
    model = DDP(Translator(32000, 512).cuda(), device_ids=[local_rank])
    criterion = nn.CrossEntropyLoss(ignore_index=PAD, reduction="sum")  # expect: DDP024
    optimizer = torch.optim.Adam(model.parameters(), lr=7e-4)
    scaler = GradScaler()
    pairs = Pairs(args.data)
    sampler = DistributedSampler(pairs)
    loader = DataLoader(pairs, 16, sampler=sampler, collate_fn=pad)
    started = time.time()
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for i, (source, target) in enumerate(loader):
            source, target = source.cuda(), target.cuda()
            with autocast():
                logits = model(source, target[:, :-1])
                loss = criterion(logits.flatten(0, 1).float(), target[:, 1:].flatten())
            scaler.scale(loss / args.accumulate).backward()
            if (i + 1) % args.accumulate == 0:  # expect: DDP010
                scaler.unscale_(optimizer)
                clip_grad_norm_(model.parameters(), args.clip)
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
            if args.max_hours and time.time() - started > 3600 * args.max_hours:
                break  # expect: DDP015
        if dist.get_rank() == 0:
            torch.save({"model": model.module.state_dict()}, "translator.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
