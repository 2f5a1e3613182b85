"""A memory timeline as columns: how much memory of which category came or went, and when."""

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
"""As PyTorch numbers them."""


class Timeline(msgspec.Struct, frozen=True):
    """Columns of length n by time (ns; -1: there before the profiler began): signed bytes, category."""

    time: Int64
    size: Int64
    category: Int8
