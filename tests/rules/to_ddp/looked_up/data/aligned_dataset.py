import torch

from data.base_dataset import BaseDataset


class AlignedDataset(BaseDataset):
    def __init__(self, opt):
        BaseDataset.__init__(self, opt)
        generator = torch.Generator().manual_seed(0)
        self.A = torch.randn(64, 8, generator=generator)

    def __getitem__(self, index):
        return {"A": self.A[index], "B": self.A[index].flip(0)}

    def __len__(self):
        return 64
