from torch.nn.parallel import DistributedDataParallel
import os
from abc import ABC, abstractmethod

import torch


class BaseModel(ABC):
    def __init__(self, opt):
        self.opt = opt
        self.gpu_ids = opt.gpu_ids
        self.isTrain = opt.isTrain
        self.device = (torch.device("cuda") if "LOCAL_RANK" in os.environ else torch.device("cuda:{}".format(self.gpu_ids[0]))) if self.gpu_ids else torch.device("cpu")
        self.save_dir = "checkpoints"
        os.makedirs(self.save_dir, exist_ok=True)
        self.model_names = []
        self.optimizers = []

    @staticmethod
    def modify_commandline_options(parser, is_train):
        return parser

    @abstractmethod
    def set_input(self, input):
        pass

    @abstractmethod
    def forward(self):
        pass

    @abstractmethod
    def optimize_parameters(self):
        pass

    def setup(self, opt):
        self.schedulers = [torch.optim.lr_scheduler.StepLR(each, 1) for each in self.optimizers]
        if not self.isTrain or opt.continue_train:
            self.load_networks("latest")

    def update_learning_rate(self):
        for scheduler in self.schedulers:
            scheduler.step()

    def save_networks(self, epoch):
        for name in self.model_names:
            if isinstance(name, str):
                save_filename = "%s_net_%s.pth" % (epoch, name)
                save_path = os.path.join(self.save_dir, save_filename)
                net = getattr(self, "net" + name)
                if len(self.gpu_ids) > 0 and torch.cuda.is_available():
                    if not torch.distributed.is_initialized() or torch.distributed.get_rank() == 0:
                        torch.save({key: value.cpu() for key, value in net.module.state_dict().items()}, save_path)
                    net.cuda(torch.cuda.current_device() if "LOCAL_RANK" in os.environ else self.gpu_ids[0])
                else:
                    if not torch.distributed.is_initialized() or torch.distributed.get_rank() == 0:
                        torch.save(net.cpu().state_dict(), save_path)

    def load_networks(self, epoch):
        for name in self.model_names:
            if isinstance(name, str):
                load_path = os.path.join(self.save_dir, "%s_net_%s.pth" % (epoch, name))
                net = getattr(self, "net" + name)
                if isinstance(net, (torch.nn.DataParallel, DistributedDataParallel)):
                    net = net.module
                state_dict = torch.load(load_path, map_location=str(self.device))
                net.load_state_dict(state_dict)

    def set_requires_grad(self, nets, requires_grad=False):
        if not isinstance(nets, list):
            nets = [nets]
        for net in nets:
            if net is not None:
                for param in net.parameters():
                    param.requires_grad = requires_grad
