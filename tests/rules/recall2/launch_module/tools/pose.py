"""Network and data of the pose project."""
import torch
from torch import nn
from torch.utils.data import TensorDataset


def build_dataset(config):
    images, heats = torch.load(config + ".pt", map_location="cpu")
    return TensorDataset(images, heats)


def build_network(config):
    del config
    return nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
                         nn.Conv2d(32, 17, 1))
