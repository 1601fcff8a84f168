import torch

from . import networks
from .base_model import BaseModel


class PlainModel(BaseModel):
    def __init__(self, opt):
        BaseModel.__init__(self, opt)
        self.model_names = ["G"]
        self.netG = networks.define_G(16, gpu_ids=self.gpu_ids)
        self.optimizer = torch.optim.SGD(self.netG.parameters(), lr=0.1)
        self.optimizers = [self.optimizer]

    def set_input(self, input):
        self.data_A = input["A"].to(self.device)
        self.data_B = input["B"].to(self.device)

    def forward(self):
        self.output = self.netG(self.data_A)

    def optimize_parameters(self):
        self.forward()
        self.optimizer.zero_grad()
        loss = torch.nn.functional.l1_loss(self.output, self.data_B)
        loss.backward()
        self.optimizer.step()
