"""Rows of the diff in the making: values per step go in, all are judged together, changes come out."""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.analyses.diff.counted_steps import counted_steps
from torch_tb_profiler.analyses.diff.name_tables import Pair
from torch_tb_profiler.analyses.shared.significance import Evidence, Rules, weigh
from torch_tb_profiler.model.trace import Float64, Trace
from torch_tb_profiler.views.diff.payload import Calls, Change, Status, Verdict

NOTHING = Change(None, None, None, None, None, None, None, "unknown")


class Judged:
    """Changes by block and row.

    The first block is the step itself, one row, judged alone; the rows of all others are corrected together.
    """

    def __init__(self, rules: Rules, blocks: list[Pair]) -> None:
        self._first = np.cumsum([0, *(len(base) for base, _ in blocks)])
        base, candidate = (np.concatenate([block[side] for block in blocks]) for side in (0, 1))
        self._found: Evidence = weigh(base, candidate, rules, alone=1)

    def change(self, block: int, row: int = 0) -> Change:
        """A row of a block."""
        found, at = self._found, int(self._first[block]) + row
        base, delta = float(found.base[at]), float(found.delta[at])
        return Change(
            base_ns=base,
            candidate_ns=float(found.candidate[at]),
            delta_ns=delta,
            delta_ratio=delta / base if base else (0.0 if delta == 0 else None),
            low_ns=_known(found.low[at]),
            high_ns=_known(found.high[at]),
            q=_known(found.q[at]),
            verdict=self._verdict(at),
        )

    def _verdict(self, at: int) -> Verdict:
        found = self._found
        if found.real[at]:
            return "slower" if found.delta[at] > 0 else "faster"
        if found.delta[at] == 0:
            return "equal"
        return "noise" if found.testable else "unknown"


def _known(value: np.float64) -> float | None:
    return None if np.isnan(value) else float(value)


def rules(base: Trace, candidate: Trace, min_effect: float) -> Rules:
    """What counts as a change between these traces."""
    durations = counted_steps(base).durations
    return Rules(
        step=float(durations.mean()) if len(durations) else 0.0,
        min_effect=min_effect,
        resolution=float(max(_tick(base), _tick(candidate))),
    )


def _tick(trace: Trace) -> int:
    """ns between two ticks of the clock: old traces count whole microseconds."""
    timed = trace.events.start[trace.events.duration > 0]
    return 1 if (timed % 1000).any() else 1000


def mean_calls(pair: tuple[Float64, Float64], row: int) -> Calls:
    """Calls per step of a row."""
    base, candidate = (float(side[row].mean()) if side.shape[1] else 0.0 for side in pair)
    return Calls(base, candidate, candidate - base)


def status(base: str | None, candidate: str | None) -> Status:
    """From the names on both sides."""
    if base is None:
        return "added"
    if candidate is None:
        return "removed"
    return "matched" if base == candidate else "renamed"


def magnitude(*changes: Change) -> tuple[bool, float]:
    """Sorts real changes first, then large ones."""
    real = [change for change in changes if change.verdict in ("slower", "faster")]
    return not real, -max(abs(change.delta_ns or 0.0) for change in real or changes)
