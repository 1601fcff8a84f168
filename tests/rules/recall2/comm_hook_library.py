"""Hooks that pack gradients before they travel, and a run that chooses one by name."""
import os

import torch
import torch.distributed as dist
import torchvision
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


def half_sum_hook(state, bucket):
    packed = bucket.buffer().to(torch.float16)
    work = dist.all_reduce(packed, group=state, async_op=True).get_future()  # expect: DDP030

    def unpack(future):
        return future.value()[0].to(torch.float32)

    return work.then(unpack)


def brain_mean_hook(state, bucket):
    group = state if state is not None else dist.group.WORLD
    packed = bucket.buffer().to(torch.bfloat16).div_(group.size())
    work = dist.all_reduce(packed, group=group, async_op=True).get_future()
    return work.then(lambda future: future.value()[0].to(torch.float32))


def plain_mean_hook(state, grads):  # expect: DDP030
    tensor = grads.buffer().div_(dist.get_world_size())
    return dist.all_reduce(tensor, async_op=True).get_future().then(lambda f: f.value()[0])


def main():
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    dist.init_process_group("nccl")
    model = DDP(torchvision.models.resnet50().cuda(), device_ids=[local])
    kind = os.environ.get("HOOK", "brain")
    if kind == "half":
        model.register_comm_hook(None, half_sum_hook)
    elif kind == "plain":
        model.register_comm_hook(state=None, hook=plain_mean_hook)
    else:
        model.register_comm_hook(None, brain_mean_hook)
    data = torchvision.datasets.FakeData(transform=torchvision.transforms.ToTensor())
    sampler = DistributedSampler(data)
    loader = DataLoader(data, 64, sampler=sampler)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda()).backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
