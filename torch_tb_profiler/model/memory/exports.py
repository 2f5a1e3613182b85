"""Exported memory timelines of PyTorch as columns: how much memory of which category came or went, and when."""

from __future__ import annotations

import msgspec

from torch_tb_profiler.model.trace import Int8, Int64

CATEGORIES = (
    "parameter",
    "optimizer state",
    "input",
    "temporary",
    "activation",
    "gradient",
    "autograd detail",
    "unknown",
)
"""Categories of a timeline, as PyTorch numbers them."""


class RecordedTimeline(msgspec.Struct, frozen=True):
    """A memory timeline; columns of length n by time.

    time      ns; -1: allocated before the profiler began
    size      bytes, negative where memory was freed
    category  index into CATEGORIES
    """

    time: Int64
    size: Int64
    category: Int8
