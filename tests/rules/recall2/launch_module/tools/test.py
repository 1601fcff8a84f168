"""Tests a pose network; the option is understood in both spellings."""
import argparse

import torch
import torch.distributed as dist

from pose import build_dataset, build_network


def main():
    parser = argparse.ArgumentParser(description="Test a pose network")
    parser.add_argument("config")
    parser.add_argument("--local_rank", "--local-rank", type=int, default=0)
    args = parser.parse_args()
    torch.cuda.set_device(args.local_rank)
    dist.init_process_group(backend="nccl")
    model = build_network(args.config).cuda().eval()
    dataset = build_dataset(args.config)
    rank, world = dist.get_rank(), dist.get_world_size()
    error = torch.zeros(2).cuda()
    with torch.no_grad():
        for index in range(rank, len(dataset), world):
            image, heat = dataset[index]
            error[0] += (model(image[None].cuda())[0] - heat.cuda()).abs().mean()
            error[1] += 1
    dist.all_reduce(error)
    if rank == 0:
        print("mean error", (error[0] / error[1]).item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
