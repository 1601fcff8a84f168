"""An old script with print statements."""
import argparse
import torch
import torch.nn as nn
import torch.distributed as dist
import torch.utils.data.distributed
from torchvision import datasets, models, transforms

parser = argparse.ArgumentParser()
parser.add_argument('--local_rank', type=int, default=0)
parser.add_argument('--epochs', type=int, default=60)
args = parser.parse_args()

dist.init_process_group(backend='nccl', init_method='env://')
torch.cuda.set_device(args.local_rank)
print 'rank', dist.get_rank()
model = models.alexnet().cuda()
model = nn.parallel.DistributedDataParallel(model, device_ids=[args.local_rank])
train_dataset = datasets.CIFAR10('data', transform=transforms.ToTensor())
train_sampler = torch.utils.data.distributed.DistributedSampler(train_dataset)
train_loader = torch.utils.data.DataLoader(train_dataset, batch_size=32, sampler=train_sampler)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
criterion = nn.CrossEntropyLoss().cuda()
for epoch in xrange(args.epochs):  # expect: DDP018
    for i, (input, target) in enumerate(train_loader):
        loss = criterion(model(input.cuda()), target.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 100 == 0:
            print 'epoch %d loss %.3f' % (epoch, loss.item())
