"""A communication hook that sums, and static_graph beside the unused search."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def half_hook(state, bucket):  # expect: DDP030
    compressed = bucket.buffer().to(torch.float16)
    future = dist.all_reduce(compressed, async_op=True).get_future()
    return future.then(lambda f: f.value()[0].to(torch.float32))


def renamed_hook(process_group, grads):  # expect: DDP030
    tensor = grads.buffer().div_(dist.get_world_size())
    return dist.all_reduce(tensor, group=process_group, async_op=True).get_future().then(
        lambda f: f.value()[0])


def main():
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    first = DDP(nn.Linear(1024, 1024).cuda(), device_ids=[local_rank])
    first.register_comm_hook(state=None, hook=half_hook)
    second = DDP(nn.Linear(1024, 10).cuda(), device_ids=[local_rank],  # expect: DDP002
                 find_unused_parameters=True, static_graph=True)
    second.register_comm_hook(None, renamed_hook)
    params = list(first.parameters()) + list(second.parameters())
    optimizer = torch.optim.SGD(params, 0.1)
    for _ in range(100):
        x = torch.randn(64, 1024, device="cuda")
        loss = second(first(x)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
