"""What the step is made of on both sides, in bars that sum to the change of the step exactly."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import msgspec
import numpy as np

from torch_tb_profiler.analyses.diff.changes import Change
from torch_tb_profiler.analyses.diff.counted_steps import Values
from torch_tb_profiler.analyses.diff.step_times import Parts, by_category
from torch_tb_profiler.analyses.shared.breakdown import breakdown
from torch_tb_profiler.model.pair import Pair, Recordings
from torch_tb_profiler.model.trace import Trace


class Bar(msgspec.Struct, frozen=True):
    """A part of the step; whole ns, rounded so that all parts sum to the step. `known`: on both sides."""

    name: str
    base_ns: int
    candidate_ns: int
    known: bool
    change: Change


def unknown_categories(pair: Pair) -> frozenset[str]:
    """Categories that one side cannot know."""
    return frozenset(name for trace in (*pair.base, *pair.candidate) for name in breakdown(trace).unknown)


def joined_parts(recordings: Recordings, of: Callable[[Trace], Parts]) -> Parts:
    """The parts of the steps of all recordings of a side."""
    each = [of(trace) for trace in recordings]
    return {name: np.concatenate([parts[name] for parts in each]) for name in each[0]}


def known_categories(pair: Pair) -> tuple[Parts, Parts]:
    """The categories of both sides; the time of those that one side does not know goes to `other` on both."""
    unknown = unknown_categories(pair)
    sides = []
    for recordings in (pair.base, pair.candidate):
        parts = joined_parts(recordings, by_category)
        for name in unknown:
            parts["other"] = parts["other"] + parts[name]
            parts[name] = np.zeros_like(parts[name])
        sides.append(parts)
    return sides[0], sides[1]


def part_values(base: Parts, candidate: Parts) -> Values:
    """A row of values per part."""
    first, second = (np.stack([side[name] for name in base]).astype(np.float64) for side in (base, candidate))
    return first, second


def bars(
    base: Parts, candidate: Parts, judged: Sequence[Change], unknown: Collection[str] = ()
) -> tuple[Bar, ...]:
    """The parts with their changes."""
    rows = zip(base, _whole_means(base), _whole_means(candidate), judged, strict=True)
    return tuple(Bar(name, old, new, name not in unknown, change) for name, old, new, change in rows)


def _whole_means(parts: Parts) -> list[int]:
    """Mean over the steps of each part in whole ns; running sums are rounded, so that all sum to the step's."""
    count = max(len(next(iter(parts.values()))), 1)
    sums = np.cumsum([int(values.sum()) for values in parts.values()]).tolist()
    rounded = [(2 * each + count) // (2 * count) for each in sums]
    return [each - before for each, before in zip(rounded, [0, *rounded], strict=False)]
