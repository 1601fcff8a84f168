"""device_map="auto" beside Accelerate."""
import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM

from instructions import rows

accelerator = Accelerator()
model = AutoModelForCausalLM.from_pretrained(
    "mistralai/Mistral-7B-v0.1",
    torch_dtype=torch.bfloat16,
    device_map="auto",  # expect: ACC005
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
loader = DataLoader(rows("alpaca"), batch_size=2, shuffle=True)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for batch in loader:
    loss = model(**batch).loss
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
