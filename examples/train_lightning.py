"""Trains a small image classifier with Lightning, whose own profiler marks hooks and modules.

pip install lightning
python examples/train_lightning.py --logdir log/lightning
"""

from __future__ import annotations

import argparse

import pytorch_lightning as lightning
import torch
from pytorch_lightning.profilers import PyTorchProfiler
from torch import Tensor, nn
from torch.profiler import schedule
from torch.utils.data import DataLoader, TensorDataset

import torch_tb_profiler as ttp


class Classifier(lightning.LightningModule):
    """Two blocks of convolutions and a linear head."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(block(3, 16), block(16, 32))
        self.head = nn.Linear(32, 10)

    def training_step(self, batch: list[Tensor], batch_idx: int) -> Tensor:
        images, labels = batch
        scores = self.head(self.features(images).mean(dim=(2, 3)))
        return nn.functional.cross_entropy(scores, labels)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters())


def block(channels: int, wider: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(channels, wider, 3, padding=1), nn.BatchNorm2d(wider), nn.ReLU(), nn.MaxPool2d(2)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logdir", default="log/lightning")
    parser.add_argument("--steps", type=int, default=3, help="steps to record")
    options = parser.parse_args()

    lightning.seed_everything(0)
    images = TensorDataset(torch.randn(256, 3, 32, 32), torch.randint(10, (256,)))
    profiler = PyTorchProfiler(
        schedule=schedule(wait=1, warmup=1, active=options.steps, repeat=1),
        on_trace_ready=ttp.handler(options.logdir),
        record_module_names=True,
        record_shapes=True,
        with_stack=True,
    )
    trainer = lightning.Trainer(
        max_steps=options.steps + 4,
        profiler=profiler,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Classifier(), DataLoader(images, batch_size=16))


if __name__ == "__main__":
    main()
