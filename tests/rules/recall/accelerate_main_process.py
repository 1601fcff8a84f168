"""A collective call and an evaluation of the wrapper on the main process only."""
import os

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader

from captions import CaptionModel, Captions


def train(config):
    accelerator = Accelerator()
    loader = DataLoader(Captions("train"), batch_size=config["batch_size"], shuffle=True,
                        num_workers=4)
    model = CaptionModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=config["lr"])
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, len(loader) * 10)  # expect: ACC004
    scheduler = accelerator.prepare(scheduler)
    for epoch in range(10):
        for image, caption in loader:
            loss = model(image, caption)
            accelerator.backward(loss)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
        if accelerator.is_main_process:
            accelerator.wait_for_everyone()  # expect: DDP014
            state = accelerator.unwrap_model(model).state_dict()
            torch.save(state, os.path.join(config["out"], f"caption{epoch}.pt"))


train({"batch_size": 16, "lr": 1e-4, "out": "runs"})
