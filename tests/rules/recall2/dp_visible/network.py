"""A small transfer network with instance normalisation."""
from torch import nn


class Transfer(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, width, 9, padding=4), nn.InstanceNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, 3, 9, padding=4))

    def forward(self, x):
        return self.layers(x)
