"""Mixed precision with clipping of scaled gradients."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.cuda.amp import GradScaler, autocast
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from vqa import QuestionNet, Questions


def train_one_epoch(model, loader, optimizer, scaler, device, clip=1.0):
    model.train()
    for image, question, answer in loader:
        optimizer.zero_grad()
        with autocast():
            out = model(image.to(device), question.to(device))
            loss = nn.functional.cross_entropy(out, answer.to(device))
        scaler.scale(loss).backward()
        nn.utils.clip_grad_norm_(model.parameters(), clip)  # expect: DDP046
        scaler.step(optimizer)
        scaler.update()


def main():
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    device = torch.device("cuda", local_rank)
    model = DDP(QuestionNet().to(device), device_ids=[local_rank])
    questions = Questions("train")
    sampler = DistributedSampler(questions)
    loader = DataLoader(questions, 32, sampler=sampler, num_workers=8)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-4)
    scaler = GradScaler()
    for epoch in range(15):
        sampler.set_epoch(epoch)
        train_one_epoch(model, loader, optimizer, scaler, device)
        if dist.get_rank() == 0:
            torch.save({"model": model.module.state_dict(), "scaler": scaler.state_dict()}, "vqa.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
