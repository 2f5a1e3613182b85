"""Lines of samples: what each tool's own reader makes of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple


class Sample(NamedTuple):
    """Time in ns of the tool's clock, the GPU, values by name."""

    time: int
    gpu: str
    values: list[tuple[str, float]]


class Tool(NamedTuple):
    """What wrote the samples.

    name   for people
    clock  "local": the file does not say of which zone its times are
    hint   how to record samples that can be read
    """

    name: str
    clock: Literal["local", "epoch"]
    hint: str


ReadLine = Callable[[str], "Sample | bool"]
"""A line to its sample; True of a line that holds none (a header, a comment), False of one that cannot be read."""


def gpu_label(*parts: str | None) -> str:
    """`GPU 0 · NVIDIA H100 · node7`."""
    return " · ".join(part for part in parts if part)
