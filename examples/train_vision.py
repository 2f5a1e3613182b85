"""Trains a small ResNet on images generated on the CPU, and profiles it.

    python examples/train_vision.py --logdir log/vision_0_workers
    python examples/train_vision.py --logdir log/vision_2_workers --workers 2

Generating an image takes time, as decoding and augmenting a real one does: without workers, each step waits.
"""

from __future__ import annotations

import argparse

import torch
from common import device, profiler
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset


class MadeUpPictures(Dataset[tuple[Tensor, Tensor]]):
    """Noise that is blurred repeatedly, with a label."""

    def __init__(self, count: int, size: int, effort: int) -> None:
        self.count, self.size, self.effort = count, size, effort

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        picture = torch.rand(3, self.size, self.size, generator=torch.Generator().manual_seed(index))
        for _ in range(self.effort):
            picture = nn.functional.avg_pool2d(picture, 5, stride=1, padding=2)
        return picture, torch.tensor(index % 10)


class Residual(nn.Module):
    """Two convolutions and a way around them."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x + self.body(x))


class SmallResNet(nn.Module):
    """A stem, residual blocks at two sizes, a classifier."""

    def __init__(self, channels: int, blocks: int) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, channels, 3, stride=2, padding=1)
        self.blocks = nn.Sequential(*(Residual(channels) for _ in range(blocks)))
        self.down = nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1)
        self.deep = nn.Sequential(*(Residual(2 * channels) for _ in range(blocks)))
        self.head = nn.Linear(2 * channels, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.blocks(torch.relu(self.stem(x)))
        x = self.deep(torch.relu(self.down(x)))
        return self.head(x.mean(dim=(2, 3)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logdir", default="log/vision")
    parser.add_argument("--workers", type=int, default=0, help="processes that load data")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--size", type=int, default=128, help="edge of an image in pixels")
    parser.add_argument("--effort", type=int, default=60, help="blur passes per image")
    parser.add_argument("--steps", type=int, default=12, help="steps to record")
    options = parser.parse_args()

    torch.manual_seed(0)
    place = device()
    model = SmallResNet(channels=16, blocks=2).to(place)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    pictures = MadeUpPictures(options.batch * (options.steps + 4), options.size, options.effort)
    loader = DataLoader(
        pictures,
        batch_size=options.batch,
        num_workers=options.workers,
        pin_memory=place.type == "cuda",
        prefetch_factor=4 if options.workers else None,
    )
    with profiler(options.logdir, worker="worker0", steps=options.steps) as prof:
        for step, (inputs, labels) in enumerate(loader):
            if step == options.steps + 2:
                break
            loss = criterion(model(inputs.to(place, non_blocking=True)), labels.to(place, non_blocking=True))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            prof.step()
    print(f"trace written to {options.logdir}")


if __name__ == "__main__":
    main()
