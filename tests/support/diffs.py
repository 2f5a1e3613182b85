"""Two recordings compared, and what the answer says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from tests.support.recordings import Op
from torch_tb_profiler.model.pair import Pair
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.views.diff.build import build
from torch_tb_profiler.views.diff.level import build_part
from torch_tb_profiler.views.diff.payload import DiffLevel, DiffParams, DiffPart, DiffPartParams, DiffPayload

WORK = [
    Op("aten::data", 400),
    *[
        Op(f"aten::layer{i}", 80 + 10 * i, [Op("aten::mm", 30, kernel=90 + 5 * i), Op("aten::add_", 25)])
        for i in range(12)
    ],
]
"""A step of some layers."""


def compare(base: Trace, candidate: Trace) -> DiffPayload:
    return build(Pair([base], [candidate]), DiffParams())


def part(base: Trace, candidate: Trace, path: str) -> DiffLevel:
    return build_part(Pair([base], [candidate]), DiffPartParams(path=path))


def noise(seed: int, step: float = 0.002, op: float = 0.003) -> Any:
    """A factor per step, and one more per operator."""
    rng = np.random.default_rng(seed)
    of_step = 1 + step * rng.standard_normal(1000)
    return lambda number: float(of_step[number] * (1 + op * rng.standard_normal()))


def values(payload: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """Every value of a key with this prefix."""
    if isinstance(payload, dict):
        for key, value in payload.items():
            if key.startswith(prefix):
                yield key, value
            yield from values(value, prefix)
    elif isinstance(payload, list):
        for each in payload:
            yield from values(each, prefix)


def verdicts(answer: DiffPayload | DiffLevel) -> set[str]:
    return {verdict for _, verdict in values(msgspec.to_builtins(answer), "verdict")}


def walk(base: Trace, candidate: Trace, path: str = "") -> Iterator[DiffPart]:
    for each in part(base, candidate, path).parts:
        yield each
        if each.parts:
            yield from walk(base, candidate, each.path)
