"""Jets with forty features each, read from one file."""
import torch
from torch.utils.data import Dataset


class Particles(Dataset):
    def __init__(self, path):
        self.features, self.labels = torch.load(path, map_location="cpu")

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.features[index], self.labels[index]
