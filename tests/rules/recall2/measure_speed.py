"""How many images a second a wrapped network trains."""
import argparse
import os
import time

import torch
import torch.distributed as dist
import torchvision.models as zoo
from torch.nn.parallel import DistributedDataParallel as DDP


def step(net, optimizer, x, y):
    optimizer.zero_grad(set_to_none=True)
    torch.nn.functional.cross_entropy(net(x), y).backward()
    optimizer.step()


def quick(net, optimizer, x, y, steps):
    start = time.perf_counter()  # expect: DDP036
    for _ in range(steps):
        step(net, optimizer, x, y)
    return steps * len(x) / (time.perf_counter() - start)


def careful(net, optimizer, x, y, steps, warm=10):
    for _ in range(warm):
        step(net, optimizer, x, y)
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(steps):
        step(net, optimizer, x, y)
    torch.cuda.synchronize()
    return steps * len(x) / (time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--arch", default="resnet50")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--careful", action="store_true")
    args = parser.parse_args()
    dist.init_process_group("nccl")
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    torch.backends.cudnn.benchmark = True
    net = DDP(getattr(zoo, args.arch)().cuda(), device_ids=[local], bucket_cap_mb=50)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    x = torch.randn(args.batch, 3, 224, 224, device=local)
    y = torch.randint(1000, (args.batch,), device=local)
    measure = careful if args.careful else quick
    rate = torch.tensor(measure(net, optimizer, x, y, 100), device=local)
    dist.all_reduce(rate)
    if dist.get_rank() == 0:
        print(f"{rate.item():.1f} images/s")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
