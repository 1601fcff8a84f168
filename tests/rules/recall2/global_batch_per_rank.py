"""ResNet with mp.spawn: the option names the batch of all cards together."""
import argparse
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torchvision
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from torchvision import transforms as T


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--global-batch-size", type=int, default=512,
                        help="total batch size over all GPUs")
    parser.add_argument("--eval-batch-size", type=int, default=512,
                        help="total batch size over all GPUs, divided among them")
    parser.add_argument("--epochs", type=int, default=90)
    return parser.parse_args()


def worker(gpu, world_size, args):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = args.port
    dist.init_process_group("nccl", rank=gpu, world_size=world_size)
    torch.cuda.set_device(gpu)
    view = T.Compose([T.RandomResizedCrop(224), T.ToTensor()])
    train = torchvision.datasets.ImageFolder("train", view)
    val = torchvision.datasets.ImageFolder("val", view)
    sampler = DistributedSampler(train)
    loader = DataLoader(train, batch_size=args.global_batch_size,  # expect: DDP044
                        sampler=sampler, num_workers=4)
    each = (args.eval_batch_size + world_size - 1) // world_size
    val_loader = DataLoader(val, batch_size=each, sampler=DistributedSampler(val, shuffle=False))
    model = DDP(torchvision.models.resnet50().cuda(gpu), device_ids=[gpu])
    optimizer = torch.optim.SGD(model.parameters(), 0.2, momentum=0.9)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        model.train()
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(model(x.cuda(gpu)), y.cuda(gpu))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        counts = torch.zeros(2, device=gpu)
        with torch.no_grad():
            for x, y in val_loader:
                counts[0] += (model(x.cuda(gpu)).argmax(1) == y.cuda(gpu)).sum()
                counts[1] += len(y)
        dist.all_reduce(counts)
        if gpu == 0:
            print(epoch, (counts[0] / counts[1]).item())
    dist.destroy_process_group()


if __name__ == "__main__":
    arguments = get_args()
    arguments.port = os.environ.get("MASTER_PORT", "29533")
    mp.spawn(worker, nprocs=torch.cuda.device_count(),
             args=(torch.cuda.device_count(), arguments))
