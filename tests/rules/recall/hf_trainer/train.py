"""A Hugging Face Trainer."""
import argparse

from datasets import load_dataset
from transformers import (AutoModelForSequenceClassification, AutoTokenizer, Trainer,
                          TrainingArguments)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output_dir")
    parser.add_argument("--epochs", type=float)
    args = parser.parse_args()
    tokenizer = AutoTokenizer.from_pretrained("distilbert-base-uncased")
    data = load_dataset("imdb").map(lambda row: tokenizer(row["text"], truncation=True))
    model = AutoModelForSequenceClassification.from_pretrained("distilbert-base-uncased")
    training_args = TrainingArguments(args.output_dir, num_train_epochs=args.epochs,
                                      per_device_train_batch_size=8, eval_strategy="epoch")
    trainer = Trainer(model=model, args=training_args, train_dataset=data["train"],  # expect: ACC001
                      eval_dataset=data["test"], processing_class=tokenizer)
    trainer.train()


if __name__ == "__main__":
    main()
