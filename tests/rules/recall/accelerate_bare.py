"""Accelerate, with a backward of one's own and an unprepared loader."""
import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader
from transformers import AutoModelForSequenceClassification, get_scheduler

from glue import collate, split


def main():
    accelerator = Accelerator(mixed_precision="fp16", gradient_accumulation_steps=4)
    train_loader = DataLoader(split("train"), batch_size=16, shuffle=True, collate_fn=collate)  # expect: ACC002
    eval_loader = DataLoader(split("validation"), batch_size=32, collate_fn=collate)
    model = AutoModelForSequenceClassification.from_pretrained("roberta-base")
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
    model, optimizer, eval_loader = accelerator.prepare(model, optimizer, eval_loader)
    scheduler = get_scheduler("linear", optimizer, 100, 3 * len(train_loader))
    for epoch in range(3):
        model.train()
        for batch in train_loader:
            batch = {k: v.to(accelerator.device) for k, v in batch.items()}
            with accelerator.accumulate(model):
                loss = model(**batch).loss
                loss.backward()  # expect: ACC002
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # expect: ACC002
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
        model.eval()
        correct = total = 0
        for batch in eval_loader:
            with torch.no_grad():
                predictions = model(**batch).logits.argmax(-1)
            predictions, labels = accelerator.gather((predictions, batch["labels"]))  # expect: ACC003
            correct += (predictions == labels).sum().item()
            total += labels.numel()
        accelerator.print(f"epoch {epoch}: {correct / total:.3f}")


if __name__ == "__main__":
    main()
