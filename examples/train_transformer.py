"""Trains a small transformer to copy its input, and profiles it.

    python examples/train_transformer.py --logdir log/transformer
    python examples/train_transformer.py --logdir log/transformer_gpu --width 1024 --batch 32 --length 512

Matrix products are computed in bfloat16 with `--bf16`.
"""

from __future__ import annotations

import argparse

import torch
from common import device, profiler
from torch import Tensor, nn


class SmallTransformer(nn.Module):
    """An embedding, a few encoder layers, and a projection back to the vocabulary."""

    def __init__(self, vocabulary: int, width: int, layers: int, length: int, heads: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Parameter(torch.zeros(length, width))
        layer = nn.TransformerEncoderLayer(width, nhead=heads, dim_feedforward=4 * width, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.encoder(self.tokens(tokens) + self.places))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logdir", default="log/transformer")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--steps", type=int, default=4, help="steps to record")
    parser.add_argument("--bf16", action="store_true", help="compute matrix products in bfloat16")
    options = parser.parse_args()

    torch.manual_seed(0)
    place = device()
    vocabulary = 500
    model = SmallTransformer(vocabulary, options.width, options.layers, options.length, options.heads).to(place)
    optimizer = torch.optim.AdamW(model.parameters())
    with profiler(options.logdir, worker="worker0", steps=options.steps) as prof:
        for _ in range(options.steps + 2):
            tokens = torch.randint(vocabulary, (options.batch, options.length), device=place)
            with torch.autocast(place.type, torch.bfloat16, enabled=options.bf16):
                loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            prof.step()
    print(f"trace written to {options.logdir}")


if __name__ == "__main__":
    main()
