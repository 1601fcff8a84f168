"""A small encoder and decoder."""
import torch
from torch import nn


class Depth(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(3, 32, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(32, 1, 4, stride=2, padding=1)

    def forward(self, image):
        return self.up(torch.relu(self.down(image)))
