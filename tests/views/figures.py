"""Times and sizes that a payload says in words: each is one of its numbers, or such a number per step."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
import numpy as np

from torch_tb_profiler.base.format import parse_bytes, parse_duration
from torch_tb_profiler.model.trace import Float64

_FIGURE = re.compile(r"(?<![\w.,])(\d[\d,]*(?:\.(\d+))?) (ns|µs|ms|s|B|KiB|MiB|GiB)\b")
_BOUND = re.compile(r"\b(?:(up to|at most|no more than)|at least) $", re.IGNORECASE)
"""What stands before a figure that is rounded up, or down."""
_NUMBER = re.compile(rb"(?<=[:,\[])-?\d[\d.eE+-]*")
_STEPS = re.compile(rb'"(?:steps|iterations|collectives)":(\d+)')


def numbers(payload: object) -> Float64:
    """Return float64[n], ascending: what the payload holds, in all and per step."""
    written = msgspec.json.encode(payload)
    held = np.abs(np.array(_NUMBER.findall(written), np.float64))
    steps = {1, *map(int, _STEPS.findall(written)), written.count(b'"complete":true')} - {0}
    return np.unique(np.concatenate([held / count for count in steps]))


def unheld(held: Float64, text: str) -> Iterator[str]:
    """Yield the figures of a sentence that stand for none of these numbers."""
    for figure in _FIGURE.finditer(text):
        value, unit = figure[1].replace(",", ""), figure[3]
        parse = parse_bytes if unit.endswith("B") else parse_duration
        about = parse(f"{value} {unit}")
        digit = parse(f"1 {unit}") / 10 ** len(figure[2] or "")
        # Of the last digit, and how floats are rounded.
        below = above = 0.501 * digit
        if bound := _BOUND.search(text[: figure.start()]):
            below, above = (1.001 * digit, 0.001 * digit) if bound[1] else (0.001 * digit, 1.001 * digit)
        near = np.searchsorted(held, about - below)
        if near == len(held) or held[near] > about + above:
            yield figure[0]
