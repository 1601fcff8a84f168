"""Catches out-of-memory in the loop and goes on with the next batch."""
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from speech import Conformer, LibriSpeech, pad


def train_one_epoch(ddp_model, loader, optimizer, scheduler, device):
    ddp_model.train()
    for batch in loader:
        try:
            feats, lens, text = (t.to(device) for t in batch)
            loss = ddp_model(feats, lens, text)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(ddp_model.parameters(), 5.0)
            optimizer.step()
            scheduler.step()
        except RuntimeError as error:
            if "out of memory" in str(error):
                torch.cuda.empty_cache()
                continue  # expect: DDP015
            raise


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    device = torch.device(f"cuda:{local_rank}")
    data = LibriSpeech("train-clean-100")
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=12, sampler=sampler, collate_fn=pad, num_workers=4)
    model = DDP(Conformer(80, 256).to(device), device_ids=[local_rank])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9999)
    for epoch in range(100):
        sampler.set_epoch(epoch)
        train_one_epoch(model, loader, optimizer, scheduler, device)
        if local_rank == 0:
            torch.save(model.module.state_dict(), "conformer.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
