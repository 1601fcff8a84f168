"""Sends a training run to the cluster with submitit; the callable below runs in each task."""
import argparse
import os
import uuid
from pathlib import Path

import submitit
import torch
import torch.distributed as dist
import torchvision
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--ngpus", type=int, default=8)
    parser.add_argument("--partition", default="gpu")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--shared", type=Path, default=Path("/checkpoint"))
    return parser.parse_args()


class Job:
    def __init__(self, args):
        self.args = args

    def __call__(self):
        env = submitit.JobEnvironment()
        self.args.rank = env.global_rank
        self.args.world_size = env.num_tasks
        self.args.local = env.local_rank
        self.train()

    def checkpoint(self):
        return submitit.helpers.DelayedSubmission(Job(self.args))

    def train(self):
        args = self.args
        dist.init_process_group("nccl", init_method=args.dist_url, rank=args.rank,
                                world_size=args.world_size)
        torch.cuda.set_device(args.local)
        model = torchvision.models.vit_b_16().cuda(args.local)
        model = DistributedDataParallel(model, device_ids=[args.rank])  # expect: LAU006
        data = torchvision.datasets.ImageFolder("train")
        sampler = DistributedSampler(data, rank=args.local)  # expect: DDP020
        loader = DataLoader(data, 64, sampler=sampler, num_workers=8)
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        for epoch in range(args.epochs):
            sampler.set_epoch(epoch)
            for image, label in loader:
                loss = torch.nn.functional.cross_entropy(model(image.cuda()), label.cuda())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            if args.rank == 0:
                torch.save(model.module.state_dict(), args.shared / f"{epoch}.pt")


def main():
    args = arguments()
    args.dist_url = (args.shared / f"{uuid.uuid4().hex}_init").as_uri()
    executor = submitit.AutoExecutor(folder=args.shared / os.environ.get("USER", "me"))
    executor.update_parameters(nodes=args.nodes, gpus_per_node=args.ngpus,
                               tasks_per_node=args.ngpus, slurm_partition=args.partition)
    print(executor.submit(Job(args)).job_id)


if __name__ == "__main__":
    main()
