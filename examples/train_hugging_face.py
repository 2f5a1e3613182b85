"""Trains a small BERT with the Trainer of Hugging Face's transformers, and records some of its steps.

pip install "transformers[torch]"
python examples/train_hugging_face.py --logdir log/hugging_face
"""

from __future__ import annotations

import argparse
import tempfile

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

import torch_tb_profiler as ttp

WORDS = 200
LENGTH = 32


def text() -> dict[str, torch.Tensor]:
    return {"input_ids": torch.randint(WORDS, (LENGTH,)), "labels": torch.randint(2, ())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logdir", default="log/hugging_face")
    parser.add_argument("--steps", type=int, default=3, help="steps to record")
    options = parser.parse_args()

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=WORDS, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128
    )
    plan = torch.profiler.schedule(wait=1, warmup=1, active=options.steps, repeat=1)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            max_steps=options.steps + 4,
            per_device_train_batch_size=16,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
        )
        recording = ttp.trainer_callback(options.logdir, schedule=plan, record_shapes=True, with_stack=True)
        texts = [text() for _ in range(256)]
        trainer = Trainer(
            BertForSequenceClassification(config), arguments, train_dataset=texts, callbacks=[recording]
        )
        trainer.train()


if __name__ == "__main__":
    main()
