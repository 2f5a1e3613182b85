"""Times per step of two traces become changes with a verdict. All are judged together."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.diff.counted_steps import Pair, counted_steps, step_durations
from torch_tb_profiler.analyses.shared.significance import Evidence, Rules, weigh
from torch_tb_profiler.model.trace import Trace

Verdict = Literal["slower", "faster", "noise", "equal", "unknown"]
"""slower, faster: significant, and large enough to matter; noise: within the scatter of the steps, or too small to
matter; equal: no difference at all; unknown: a side has fewer than two steps, so nothing can be concluded."""


class Change(msgspec.Struct, frozen=True):
    """A time per step on both sides.

    base_ns, candidate_ns  means over the counted steps; None where not known, see `reasons` of the payload
    delta_ns               candidate - base
    delta_ratio            delta / base; None where the base has none
    low_ns, high_ns        interval of `delta_ns` at `confidence`, by bootstrap over steps; None: too few steps
    q                      false discovery rate at which the difference would count as significant; None: too few
                           steps, or too small to be tested
    """

    base_ns: float | None
    candidate_ns: float | None
    delta_ns: float | None
    delta_ratio: float | None
    low_ns: float | None
    high_ns: float | None
    q: float | None
    verdict: Verdict

    @property
    def significant(self) -> bool:
        """Whether the change is real and large enough to matter."""
        return self.verdict in ("slower", "faster")


NOT_KNOWN = Change(None, None, None, None, None, None, None, "unknown")

NO_TIME = Change(0.0, 0.0, 0.0, 0.0, None, None, None, "equal")


def changes(
    base: Trace, candidate: Trace, min_effect: float, blocks: Mapping[str, Pair]
) -> dict[str, list[Change]]:
    """The change of each row of each block, and under "step" that of the step itself.

    The step is a question of its own; the rows of all blocks are corrected together for being many.
    """
    pairs = {"step": step_durations(base, candidate), **blocks}
    first, second = (np.concatenate([pair[side] for pair in pairs.values()]) for side in (0, 1))
    evidence = weigh(first, second, _rules(base, candidate, min_effect), alone=1)
    rows = iter(range(len(first)))
    return {name: [_change(evidence, row) for row in islice(rows, len(pair[0]))] for name, pair in pairs.items()}


def _change(evidence: Evidence, row: int) -> Change:
    base, delta = float(evidence.base[row]), float(evidence.delta[row])
    return Change(
        base_ns=base,
        candidate_ns=float(evidence.candidate[row]),
        delta_ns=delta,
        delta_ratio=delta / base if base else (0.0 if delta == 0 else None),
        low_ns=_known(evidence.low[row]),
        high_ns=_known(evidence.high[row]),
        q=_known(evidence.q[row]),
        verdict=_verdict(evidence, row),
    )


def _verdict(evidence: Evidence, row: int) -> Verdict:
    if evidence.significant[row]:
        return "slower" if evidence.delta[row] > 0 else "faster"
    if evidence.delta[row] == 0:
        return "equal"
    return "noise" if evidence.testable else "unknown"


def _known(value: np.float64) -> float | None:
    return None if np.isnan(value) else float(value)


def _rules(base: Trace, candidate: Trace, min_effect: float) -> Rules:
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
