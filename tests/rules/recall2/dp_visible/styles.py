"""Transfers a style; wrapped for the two cards that go.sh leaves visible."""
import argparse

import torch
import torch.nn as nn

from network import Transfer

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=2)
args = parser.parse_args()

device = torch.device("cuda:2")  # expect: DP003
model = Transfer().to(device)
model = nn.DataParallel(model, device_ids=[2, 3])  # expect: DP003 DP017
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
images = torch.load("images.pt", map_location="cpu")
for epoch in range(args.epochs):
    for batch in images.split(16):
        batch = batch.to(device)
        loss = (model(batch) - batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
torch.save(model.module.state_dict(), "style.pt")
