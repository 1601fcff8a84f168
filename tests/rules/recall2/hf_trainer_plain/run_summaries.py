"""Summaries with the Hugging Face Trainer."""
import sys
from dataclasses import dataclass, field

from datasets import load_dataset
from transformers import (AutoModelForSeq2SeqLM, AutoTokenizer, DataCollatorForSeq2Seq,
                          HfArgumentParser, Seq2SeqTrainer, Seq2SeqTrainingArguments)


@dataclass
class DataArguments:
    train_file: str = field(metadata={"help": "a JSON lines file"})
    longest: int = field(default=512)


def main():
    parser = HfArgumentParser((DataArguments, Seq2SeqTrainingArguments))
    if sys.argv[1].endswith(".json"):
        data_args, training_args = parser.parse_json_file(sys.argv[1])
    else:
        data_args, training_args = parser.parse_args_into_dataclasses()
    tokenizer = AutoTokenizer.from_pretrained("t5-base")
    model = AutoModelForSeq2SeqLM.from_pretrained("t5-base")
    raw = load_dataset("json", data_files=data_args.train_file)["train"]
    with training_args.main_process_first(desc="tokenize"):
        data = raw.map(lambda row: tokenizer(row["text"], text_target=row["summary"],
                                             max_length=data_args.longest, truncation=True),
                       remove_columns=raw.column_names)
    trainer = Seq2SeqTrainer(model=model, args=training_args,  # expect: ACC001
                             train_dataset=data,
                             data_collator=DataCollatorForSeq2Seq(tokenizer, model))
    trainer.train(resume_from_checkpoint=training_args.resume_from_checkpoint)
    trainer.save_model()


if __name__ == "__main__":
    main()
