"""Gradient accumulation without no_sync."""
import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from transformers import BertForSequenceClassification, get_linear_schedule_with_warmup

from glue import features


def train(args, model, train_set):
    sampler = DistributedSampler(train_set)
    loader = DataLoader(train_set, sampler=sampler, batch_size=args.per_gpu_batch, num_workers=4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    total = len(loader) // args.gradient_accumulation_steps * args.epochs
    scheduler = get_linear_schedule_with_warmup(optimizer, 100, total)
    model = DDP(model, device_ids=[args.local_rank], output_device=args.local_rank)
    model.zero_grad()
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for step, batch in enumerate(loader):
            model.train()
            batch = {k: v.to(args.device) for k, v in batch.items()}
            loss = model(**batch).loss
            loss = loss / args.gradient_accumulation_steps
            loss.backward()
            if (step + 1) % args.gradient_accumulation_steps == 0:
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()  # expect: DDP010
                scheduler.step()
                model.zero_grad()
    if args.local_rank == 0:
        model.module.save_pretrained(args.output)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--per_gpu_batch", type=int, default=8)
    parser.add_argument("--gradient_accumulation_steps", type=int, default=4)
    parser.add_argument("--lr", type=float, default=5e-5)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--output", default="out")
    args = parser.parse_args()
    args.local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(args.local_rank)
    args.device = torch.device("cuda", args.local_rank)
    dist.init_process_group("nccl")
    model = BertForSequenceClassification.from_pretrained("bert-base-uncased").to(args.device)
    train(args, model, features("mnli"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
