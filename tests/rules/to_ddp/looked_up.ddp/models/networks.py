import os
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
import torch
import torch.nn as nn
from torch.nn import init


def init_weights(net, init_gain=0.02):
    def init_func(m):
        if hasattr(m, "weight") and m.__class__.__name__.find("Linear") != -1:
            init.normal_(m.weight.data, 0.0, init_gain)

    net.apply(init_func)
    if isinstance(net, torch.nn.parallel.DistributedDataParallel):
        for weight in net.state_dict().values():
            torch.distributed.broadcast(weight, 0)


def init_net(net, init_gain=0.02, gpu_ids=[]):
    if dist.is_initialized() or len(gpu_ids) > 0:
        assert torch.cuda.is_available()
        net.to(torch.cuda.current_device() if "LOCAL_RANK" in os.environ else gpu_ids[0])
        net = DistributedDataParallel(net.to(torch.cuda.current_device()), device_ids=[torch.cuda.current_device()], broadcast_buffers=False) if dist.is_initialized() else torch.nn.DataParallel(net, gpu_ids)
    init_weights(net, init_gain=init_gain)
    return net


def define_G(width, gpu_ids=[]):
    net = Generator(width)
    return init_net(net, 0.02, gpu_ids)


def define_D(width, gpu_ids=[]):
    net = Discriminator(width)
    return init_net(net, 0.02, gpu_ids)


class GANLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("real_label", torch.tensor(1.0))
        self.register_buffer("fake_label", torch.tensor(0.0))
        self.loss = nn.BCEWithLogitsLoss()

    def __call__(self, prediction, target_is_real):
        target = self.real_label if target_is_real else self.fake_label
        return self.loss(prediction, target.expand_as(prediction))


class Generator(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.model = nn.Sequential(nn.Linear(8, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, 8))

    def forward(self, x):
        return self.model(x)


class Discriminator(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.model = nn.Sequential(nn.Linear(16, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, x):
        return self.model(x)
