"""Translation with Accelerate; a few calls still go around it."""
import argparse

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.nn.utils import clip_grad_norm_
from torch.utils.data import DataLoader
from transformers import (AutoModelForSeq2SeqLM, AutoTokenizer, DataCollatorForSeq2Seq,
                          get_linear_schedule_with_warmup)


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="t5-small")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--accumulate", type=int, default=4)
    parser.add_argument("--mixed-precision", choices=["no", "fp16", "bf16"], default="fp16")
    return parser.parse_args()


def main():
    args = parse_args()
    set_seed(42)
    accelerator = Accelerator(gradient_accumulation_steps=args.accumulate,
                              mixed_precision=args.mixed_precision)
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    model = AutoModelForSeq2SeqLM.from_pretrained(args.model)
    train = torch.load("train.pt", map_location="cpu", weights_only=False)
    held_out = torch.load("held_out.pt", map_location="cpu", weights_only=False)
    collate = DataCollatorForSeq2Seq(tokenizer, model=model)
    train_loader = DataLoader(train, shuffle=True, batch_size=16, collate_fn=collate)
    eval_loader = DataLoader(held_out, batch_size=32, collate_fn=collate)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
    model, optimizer, train_loader = accelerator.prepare(model, optimizer, train_loader)
    eval_loader = accelerator.prepare(eval_loader)
    scheduler = get_linear_schedule_with_warmup(
        optimizer, 100, args.epochs * len(train_loader))
    scheduler = accelerator.prepare(scheduler)  # expect: ACC004

    for epoch in range(args.epochs):
        model.train()
        for batch in train_loader:
            with accelerator.accumulate(model):
                loss = model(**batch).loss
                loss.backward()  # expect: ACC002
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
        model.eval()
        losses = []
        for batch in eval_loader:
            with torch.no_grad():
                loss = model(**batch).loss
            losses.append(accelerator.gather_for_metrics(loss.repeat(32)))
        accelerator.print(epoch, torch.cat(losses).mean().item())
    accelerator.wait_for_everyone()
    accelerator.unwrap_model(model).save_pretrained(
        "translation", save_function=accelerator.save,
        is_main_process=accelerator.is_main_process)


if __name__ == "__main__":
    main()
