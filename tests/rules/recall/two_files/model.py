"""A small network with a layer too many."""
import torch.nn as nn


class SmallCNN(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1))
        self.neck = nn.Linear(16, 16)  # expect: DDP001
        self.head = nn.Linear(16, classes)

    def forward(self, x):
        return self.head(self.body(x).flatten(1))
