"""A segmentation run whose options are the parameters of one function, read by fire."""
import functools
import os

import fire
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from torchvision.datasets import VOCSegmentation
from torchvision.models.segmentation import fcn_resnet50


def is_main():
    return dist.get_rank() == 0


def evaluate(model, loader, device):
    model.eval()
    wrong = torch.zeros(1, device=device)
    seen = torch.zeros(1, device=device)
    with torch.no_grad():
        for image, mask in loader:
            guess = model(image.to(device))["out"].argmax(1)
            wrong += (guess != mask.to(device)).sum()
            seen += mask.numel()
    dist.all_reduce(wrong)
    dist.all_reduce(seen)
    return (wrong / seen).item()


def run(root, epochs=30, batch=4, lr=0.01, workers=4, warm=None):
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    make_loader = functools.partial(DataLoader, batch_size=batch, num_workers=workers,
                                    pin_memory=True)
    train = VOCSegmentation(root, image_set="train")
    val = VOCSegmentation(root, image_set="val")
    train_loader = make_loader(train, shuffle=True, drop_last=True)  # expect: DDP017
    val_loader = make_loader(val, sampler=DistributedSampler(val, shuffle=False))
    model = fcn_resnet50(num_classes=21)
    model = torch.nn.SyncBatchNorm.convert_sync_batchnorm(model).to(device)
    if warm is not None:
        model.load_state_dict(torch.load(warm, map_location="cpu"))
    model = DistributedDataParallel(model, device_ids=[device.index])
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    for epoch in range(epochs):
        model.train()
        for image, mask in train_loader:
            loss = F.cross_entropy(model(image.to(device))["out"], mask.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        error = evaluate(model, val_loader, device)
        if is_main():
            print(f"epoch {epoch} pixel error {error:.4f}")
            torch.save(model.state_dict(), "last.pth")  # expect: DDP041
    dist.destroy_process_group()


if __name__ == "__main__":
    fire.Fire(run)
