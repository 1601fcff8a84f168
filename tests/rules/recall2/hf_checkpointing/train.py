"""Fine-tunes a language model with the Hugging Face Trainer under torchrun."""
from datasets import load_from_disk
from transformers import (AutoModelForCausalLM, AutoTokenizer, DataCollatorForLanguageModeling,
                          Trainer, TrainingArguments)


def arguments(folder, quick):
    if quick:
        return TrainingArguments(folder, max_steps=10, gradient_checkpointing=True,
                                 gradient_checkpointing_kwargs={"use_reentrant": False},
                                 ddp_find_unused_parameters=True)
    return TrainingArguments(
        output_dir=folder,
        per_device_train_batch_size=4,
        gradient_checkpointing=True,  # expect: DDP028
        ddp_find_unused_parameters=True,
        num_train_epochs=1,
    )


def main():
    tokenizer = AutoTokenizer.from_pretrained("gpt2")
    model = AutoModelForCausalLM.from_pretrained("gpt2")
    model.config.use_cache = False
    collator = DataCollatorForLanguageModeling(tokenizer, mlm=False)
    trainer = Trainer(model=model, args=arguments("out", False), data_collator=collator,
                      train_dataset=load_from_disk("tokens"))
    trainer.train()


if __name__ == "__main__":
    main()
