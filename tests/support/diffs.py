"""Compare two recordings, and read the answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from tests.support.recordings import Op
from torch_tb_profiler.model.trace import Trace, TracePair
from torch_tb_profiler.views.diff.build import build, build_part
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
    return build(TracePair([base], [candidate]), DiffParams())


def part(base: Trace, candidate: Trace, path: str) -> DiffLevel:
    return build_part(TracePair([base], [candidate]), DiffPartParams(path=path))


def noise(seed: int, step: float = 0.002, op: float = 0.003) -> Any:
    """Return a function from a step to a random factor: one per step, times one per operator."""
    rng = np.random.default_rng(seed)
    step_factors = 1 + step * rng.standard_normal(1000)
    return lambda number: float(step_factors[number] * (1 + op * rng.standard_normal()))


def values(payload: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield every (key, value) whose key has this prefix."""
    if isinstance(payload, dict):
        for key, value in payload.items():
            if key.startswith(prefix):
                yield key, value
            yield from values(value, prefix)
    elif isinstance(payload, list):
        for item in payload:
            yield from values(item, prefix)


def verdicts(answer: DiffPayload | DiffLevel) -> set[str]:
    return {verdict for _, verdict in values(msgspec.to_builtins(answer), "verdict")}


def walk(base: Trace, candidate: Trace, path: str = "") -> Iterator[DiffPart]:
    """Yield all parts below `path`, parents first."""
    for child in part(base, candidate, path).parts:
        yield child
        if child.parts:
            yield from walk(base, candidate, child.path)
