"""Adapts a language model with low-rank layers."""
import sys

import torch
from accelerate import Accelerator
from peft import LoraConfig, get_peft_model
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM, BitsAndBytesConfig

from texts import Texts


def main():
    accelerator = Accelerator()
    base = AutoModelForCausalLM.from_pretrained(
        "gpt2", quantization_config=BitsAndBytesConfig(load_in_4bit=True),
        device_map="auto")  # expect: ACC005
    model = get_peft_model(base, LoraConfig(r=8, task_type="CAUSAL_LM"))
    teacher = AutoModelForCausalLM.from_pretrained(
        "gpt2", device_map={"": accelerator.local_process_index}).eval()
    loader = DataLoader(Texts(sys.argv[-1]), 4, shuffle=True)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-4)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for ids in loader:
        with torch.no_grad():
            wanted = teacher(ids).logits.softmax(-1)
        logits = model(ids).logits.log_softmax(-1)
        accelerator.backward(torch.nn.functional.kl_div(logits, wanted, reduction="batchmean"))
        optimizer.step()
        optimizer.zero_grad()
    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        accelerator.unwrap_model(model).save_pretrained(sys.argv[-1])


if __name__ == "__main__":
    main()
