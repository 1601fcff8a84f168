"""CIFAR-10 with Horovod, half ported from a single GPU."""
import argparse

import horovod.torch as hvd
import torch
import torch.nn.functional as F
import torchvision
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from torchvision.transforms import ToTensor

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=30)
parser.add_argument("--base-lr", type=float, default=0.0125)
args = parser.parse_args()


def average(value, name):
    return hvd.allreduce(torch.tensor(value), name=name).item()


def main():
    hvd.init()
    torch.cuda.set_device(hvd.local_rank())
    train = torchvision.datasets.CIFAR10("cifar", transform=ToTensor())
    test = torchvision.datasets.CIFAR10("cifar", train=False, transform=ToTensor())
    sampler = DistributedSampler(train)  # expect: HVD002
    train_loader = DataLoader(train, 64, sampler=sampler, num_workers=2)
    test_sampler = DistributedSampler(test, num_replicas=hvd.size(), rank=hvd.rank(),
                                      shuffle=False)
    test_loader = DataLoader(test, 256, sampler=test_sampler)

    model = torchvision.models.resnet18(num_classes=10).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.base_lr * hvd.size(), momentum=0.9)
    optimizer = hvd.DistributedOptimizer(  # expect: HVD005
        optimizer, named_parameters=model.named_parameters())
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)

    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        model.train()
        for image, label in train_loader:
            optimizer.zero_grad()
            F.cross_entropy(model(image.cuda()), label.cuda()).backward()
            optimizer.step()
        model.eval()
        hits = 0.0
        with torch.no_grad():
            for image, label in test_loader:
                hits += (model(image.cuda()).argmax(1).cpu() == label).float().sum().item()
        accuracy = average(hits / len(test_sampler), "accuracy")
        if hvd.rank() == 0:
            print(epoch, accuracy)
            torch.save(model.state_dict(), "cifar.pt")


if __name__ == "__main__":
    main()
