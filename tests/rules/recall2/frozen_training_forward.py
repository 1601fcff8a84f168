"""Distillation: the student, too, runs without gradients by mistake."""
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
import torchvision
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


def soft_loss(student, teacher, temperature):
    return F.kl_div(F.log_softmax(student / temperature, 1), F.softmax(teacher / temperature, 1),
                    reduction="batchmean") * temperature ** 2


class Distill:
    def __init__(self, local):
        self.device = torch.device("cuda", local)
        self.teacher = torchvision.models.resnet50(weights="DEFAULT").to(self.device).eval()
        student = torchvision.models.mobilenet_v3_small().to(self.device)
        self.student = DDP(student, device_ids=[local])
        self.optimizer = torch.optim.AdamW(self.student.parameters(), 1e-3)

    def step(self, image):
        image = image.to(self.device)
        with torch.no_grad():
            wanted = self.teacher(image)
            found = self.student(image)  # expect: DDP047
        loss = soft_loss(found, wanted, 4.0)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    @torch.inference_mode()
    def accuracy(self, loader):
        self.student.eval()
        counts = torch.zeros(2, device=self.device)
        for image, label in loader:
            guess = self.student(image.to(self.device)).argmax(1).cpu()
            counts += torch.tensor([(guess == label).sum(), len(label)], device=self.device)
        dist.all_reduce(counts)
        self.student.train()
        return (counts[0] / counts[1]).item()


def main():
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    dist.init_process_group("nccl")
    data = torchvision.datasets.FakeData(5000, transform=torchvision.transforms.ToTensor())
    sampler = DistributedSampler(data)
    loader = DataLoader(data, 64, sampler=sampler)
    run = Distill(local)
    for epoch in range(5):
        sampler.set_epoch(epoch)
        for image, _ in loader:
            run.step(image)
        accuracy = run.accuracy(loader)
        if dist.get_rank() == 0:
            print(epoch, accuracy)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
