"""bfloat16 autocast around a DataParallel call."""
import torch
import torch.nn as nn

from vit import VisionTransformer, images

model = VisionTransformer(depth=12).cuda()
model = nn.DataParallel(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
amp_dtype = torch.bfloat16
for epoch in range(300):
    for x, y in images("train", 512):
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=amp_dtype):
            logits = model(x.cuda())  # expect: DP014
            loss = nn.functional.cross_entropy(logits, y.cuda())
        loss.backward()
        optimizer.step()
