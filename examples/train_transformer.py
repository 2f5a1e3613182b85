"""Trains a small transformer to copy its input, and profiles it.

python examples/train_transformer.py --logdir log/transformer
"""

from __future__ import annotations

import argparse

import torch
from common import device, profiler
from torch import Tensor, nn


class SmallTransformer(nn.Module):
    """An embedding, a few encoder layers, and a projection back to the vocabulary."""

    def __init__(self, vocabulary: int, width: int, layers: int, length: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Parameter(torch.zeros(length, width))
        layer = nn.TransformerEncoderLayer(width, nhead=4, dim_feedforward=4 * width, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.encoder(self.tokens(tokens) + self.places))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logdir", default="log/transformer")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--steps", type=int, default=4, help="steps to record")
    options = parser.parse_args()

    torch.manual_seed(0)
    place = device()
    vocabulary = 500
    model = SmallTransformer(vocabulary, width=128, layers=3, length=options.length).to(place)
    optimizer = torch.optim.AdamW(model.parameters())
    with profiler(options.logdir, worker="worker0", steps=options.steps) as prof:
        for _ in range(options.steps + 2):
            tokens = torch.randint(vocabulary, (options.batch, options.length), device=place)
            loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            prof.step()
    print(f"trace written to {options.logdir}")


if __name__ == "__main__":
    main()
