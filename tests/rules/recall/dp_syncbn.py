"""SyncBatchNorm in a program of one process."""
import torch
import torch.nn as nn
from torchvision.models import resnet50

from food import food_loader

model = resnet50(num_classes=101)
model = nn.SyncBatchNorm.convert_sync_batchnorm(model)  # expect: DP013
model = nn.DataParallel(model).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(90):
    for images, labels in food_loader(batch_size=256):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images.cuda()), labels.cuda()).backward()
        optimizer.step()
