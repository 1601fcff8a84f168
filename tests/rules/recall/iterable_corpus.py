"""An IterableDataset that every rank reads whole."""
import json
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset
from transformers import AutoModelForCausalLM, AutoTokenizer


class JsonLines(IterableDataset):
    def __init__(self, path, tokenizer, length):
        self.path = path
        self.tokenizer = tokenizer
        self.length = length

    def __iter__(self):
        with open(self.path) as lines:
            for line in lines:
                ids = self.tokenizer(json.loads(line)["text"]).input_ids[: self.length]
                yield torch.tensor(ids + [0] * (self.length - len(ids)))


def main():
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    tokenizer = AutoTokenizer.from_pretrained("gpt2")
    model = AutoModelForCausalLM.from_pretrained("gpt2").cuda()
    model = DDP(model, device_ids=[local_rank])
    loader = DataLoader(JsonLines("wiki.jsonl", tokenizer, 512), batch_size=4)  # expect: DDP017
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
    for step, ids in enumerate(loader):
        ids = ids.cuda()
        loss = model(input_ids=ids, labels=ids).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0 and dist.get_rank() == 0:
            print(step, loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
