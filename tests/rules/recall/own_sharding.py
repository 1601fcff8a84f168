"""Files are split by rank with a stride, so ranks have different numbers of batches."""
import glob
import os

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset


class Slices(Dataset):
    def __init__(self, files):
        self.files = files

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        volume = np.load(self.files[index])
        return torch.from_numpy(volume["x"]), torch.from_numpy(volume["y"])


def main():
    dist.init_process_group("nccl")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    files = sorted(glob.glob("scans/*.npz"))
    my_files = files[rank::world_size]  # expect: DDP016
    loader = DataLoader(Slices(my_files), batch_size=2, shuffle=True, num_workers=2)
    model = DDP(nn.Conv3d(1, 2, 3, padding=1).cuda(), device_ids=[torch.cuda.current_device()])
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(40):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
