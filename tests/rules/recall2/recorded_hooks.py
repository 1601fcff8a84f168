"""Records activations with forward hooks, steps on one rank only, logs to a board."""
import os
from collections import defaultdict

import torch
import torch.distributed as dist
import torch.nn.functional as F
import torchvision
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from torch.utils.tensorboard import SummaryWriter


class Recorder:
    def __init__(self, net):
        self.values = defaultdict(list)
        for name, layer in net.named_modules():
            if isinstance(layer, torch.nn.Conv2d):
                layer.register_forward_hook(self.hook(name))

    def hook(self, name):
        def record(layer, inputs, output):
            self.values[name].append(output.detach().abs().mean())

        return record


def log(writer, recorder, epoch):
    for name, values in recorder.values.items():
        writer.add_scalar(name, torch.stack(values).mean().item(), epoch)
    recorder.values.clear()


def main():
    dist.init_process_group("nccl")
    rank, local = dist.get_rank(), int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    writer = SummaryWriter("board") if rank == 0 else None
    net = torchvision.models.squeezenet1_1(num_classes=10).cuda()
    recorder = Recorder(net)
    net = DDP(net, device_ids=[local], gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    data = torchvision.datasets.FakeData(
        2000, num_classes=10, transform=torchvision.transforms.ToTensor())
    sampler = DistributedSampler(data, seed=7)
    loader = DataLoader(data, 32, sampler=sampler)
    for epoch in range(4):
        sampler.set_epoch(epoch)
        for image, label in loader:
            optimizer.zero_grad()
            F.cross_entropy(net(image.cuda()), label.cuda()).backward()
            if rank == 0:
                torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                optimizer.step()  # expect: DDP027
        if writer is not None:
            log(writer, recorder, epoch)
    if dist.get_rank() != 0:
        return
    writer.close()
    dist.barrier()  # expect: DDP014


if __name__ == "__main__":
    main()
