"""Trains a pose network."""
import argparse
import os

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from pose import build_dataset, build_network


def parse_args():
    parser = argparse.ArgumentParser(description="Train a pose network")
    parser.add_argument("config", help="train config file path")
    parser.add_argument("--work-dir", help="where logs and models go")
    parser.add_argument("--launcher", choices=["none", "pytorch", "slurm"], default="none")
    parser.add_argument("--local_rank", type=int, default=0)  # expect: LAU003
    args = parser.parse_args()
    if "LOCAL_RANK" not in os.environ:
        os.environ["LOCAL_RANK"] = str(args.local_rank)
    return args


def main():
    args = parse_args()
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group(backend="nccl")
    dataset = build_dataset(args.config)
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=32, sampler=sampler, num_workers=4)
    model = build_network(args.config).cuda()
    model = torch.nn.parallel.DistributedDataParallel(
        model, device_ids=[local_rank], broadcast_buffers=False,
        find_unused_parameters=True, static_graph=True)  # expect: DDP002
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-4)
    for epoch in range(210):
        sampler.set_epoch(epoch)
        for image, heat in loader:
            loss = torch.nn.functional.mse_loss(model(image.cuda()), heat.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if dist.get_rank() == 0 and args.work_dir:
            torch.save(model.module.state_dict(), os.path.join(args.work_dir, "last.pth"))


if __name__ == "__main__":
    main()
