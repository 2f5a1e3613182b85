"""A sample of a GPU, and the tool that took it: what the line readers of all tools return."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec


class GpuSample(msgspec.Struct, frozen=True):
    """The values of one GPU at one time.

    time    ns in the clock of the tool
    gpu     label of the GPU
    values  (name, value) pairs
    """

    time: int
    gpu: str
    values: list[tuple[str, float]]


class SamplingTool(msgspec.Struct, frozen=True):
    """The tool that wrote a file of samples.

    name   display name
    clock  "local" if the file doesn't say which time zone its times are in
    hint   how to record samples that can be read
    """

    name: str
    clock: Literal["local", "epoch"]
    hint: str


ReadLine = Callable[[str], GpuSample | bool]
"""Returns the sample in a line, True for a line without one (header, comment), False for an unreadable line."""


def gpu_label(*parts: str | None) -> str:
    """Return a label such as `GPU 0 · NVIDIA H100 · node7`."""
    return " · ".join(part for part in parts if part)
