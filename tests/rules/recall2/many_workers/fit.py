"""Video classification; decoding is slow, so there are many workers."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from torchvision.datasets import Kinetics
from torchvision.models.video import r3d_18


def main():
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    clips = Kinetics("kinetics", frames_per_clip=16)
    sampler = DistributedSampler(clips)
    loader = DataLoader(clips, batch_size=12, sampler=sampler, num_workers=16,
                        pin_memory=True, drop_last=True)
    net = nn.SyncBatchNorm.convert_sync_batchnorm(r3d_18()).cuda()
    net = DDP(net, device_ids=[local_rank])
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    for epoch in range(45):
        sampler.set_epoch(epoch)
        for video, _, label in loader:
            loss = nn.functional.cross_entropy(net(video.cuda()), label.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if dist.get_rank() == 0:
            torch.save(net.module.state_dict(), "r3d.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
