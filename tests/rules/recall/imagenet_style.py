"""ResNet on an image folder, one process a GPU, in the style of the classic ImageNet script."""
import argparse
import os
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torchvision.datasets as datasets
import torchvision.models as models
import torchvision.transforms as transforms

parser = argparse.ArgumentParser(description="image classification")
parser.add_argument("data", metavar="DIR")
parser.add_argument("-a", "--arch", default="resnet50")
parser.add_argument("-j", "--workers", default=8, type=int)
parser.add_argument("--epochs", default=90, type=int)
parser.add_argument("-b", "--batch-size", default=256, type=int)
parser.add_argument("--lr", default=0.1, type=float)
parser.add_argument("--resume", default="", type=str)
parser.add_argument("--world-size", default=1, type=int)
parser.add_argument("--rank", default=0, type=int)
parser.add_argument("--dist-url", default="tcp://10.1.1.20:23456")
best_acc1 = 0


def main():
    args = parser.parse_args()
    ngpus = torch.cuda.device_count()
    args.world_size = ngpus * args.world_size
    mp.spawn(main_worker, nprocs=ngpus, args=(ngpus, args))


def main_worker(gpu, ngpus, args):
    global best_acc1
    args.rank = args.rank * ngpus + gpu
    dist.init_process_group("nccl", init_method=args.dist_url,
                            world_size=args.world_size, rank=args.rank)
    torch.cuda.set_device(gpu)
    model = models.__dict__[args.arch]()
    model.cuda(gpu)
    args.batch_size = int(args.batch_size / ngpus)
    model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[gpu])
    criterion = nn.CrossEntropyLoss().cuda(gpu)
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9, weight_decay=1e-4)

    if args.resume:
        checkpoint = torch.load(args.resume)  # expect: DDP040
        model.load_state_dict(checkpoint["state_dict"])
        optimizer.load_state_dict(checkpoint["optimizer"])

    normalize = transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
    train_set = datasets.ImageFolder(
        os.path.join(args.data, "train"),
        transforms.Compose([transforms.RandomResizedCrop(224), transforms.ToTensor(), normalize]))
    val_set = datasets.ImageFolder(
        os.path.join(args.data, "val"),
        transforms.Compose([transforms.CenterCrop(224), transforms.ToTensor(), normalize]))
    train_sampler = torch.utils.data.distributed.DistributedSampler(train_set)
    train_loader = torch.utils.data.DataLoader(
        train_set, batch_size=args.batch_size, num_workers=args.workers, pin_memory=True,
        sampler=train_sampler)
    val_loader = torch.utils.data.DataLoader(val_set, batch_size=args.batch_size,
                                             num_workers=args.workers, pin_memory=True)

    for epoch in range(args.epochs):  # expect: DDP018
        adjust_learning_rate(optimizer, epoch, args)
        train(train_loader, model, criterion, optimizer, epoch, gpu)
        acc1 = validate(val_loader, model, criterion, gpu)
        best_acc1 = max(acc1, best_acc1)
        torch.save({"epoch": epoch + 1, "state_dict": model.state_dict(),  # expect: DDP039
                    "optimizer": optimizer.state_dict()}, "checkpoint.pth.tar")
    dist.destroy_process_group()


def train(loader, model, criterion, optimizer, epoch, gpu):
    model.train()
    end = time.time()
    for i, (images, target) in enumerate(loader):
        images = images.cuda(gpu, non_blocking=True)
        target = target.cuda(gpu, non_blocking=True)
        output = model(images)
        loss = criterion(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 10 == 0:
            print(f"epoch {epoch} step {i} loss {loss.item():.4f} {time.time() - end:.2f}s")
        end = time.time()


def validate(loader, model, criterion, gpu):
    model.eval()
    correct = 0
    with torch.no_grad():
        for images, target in loader:
            output = model(images.cuda(gpu))
            correct += (output.argmax(1) == target.cuda(gpu)).sum().item()
    return correct / len(loader.dataset)


def adjust_learning_rate(optimizer, epoch, args):
    for group in optimizer.param_groups:
        group["lr"] = args.lr * (0.1 ** (epoch // 30))


if __name__ == "__main__":
    main()
