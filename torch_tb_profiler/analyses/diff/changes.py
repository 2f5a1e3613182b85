"""Times per step of both sides become changes with a verdict. All are judged together."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.diff.counted_steps import Values, step_counts, step_durations
from torch_tb_profiler.analyses.shared.significance import Evidence, Rules, weigh
from torch_tb_profiler.model.pair import Pair
from torch_tb_profiler.model.trace import Bool, Float64, Trace

Verdict = Literal["slower", "faster", "unchanged", "equal", "cannot_tell", "unknown"]
"""slower, faster: proven, and at least the least effect that matters; unchanged: the whole interval lies within
plus and minus that effect; equal: the very same times in all steps; cannot_tell: neither is proven; unknown: a
side does not record the time."""


class Change(msgspec.Struct, frozen=True):
    """A time per step on both sides.

    base_ns, candidate_ns  means over the counted steps; None where not known, see `reasons` of the payload
    delta_ns               candidate - base
    delta_ratio            delta / base; None where the base has none
    low_ns, high_ns        interval of the change of a typical step at `confidence`, around the difference of
                           trimmed means; None: too few steps
    q                      false discovery rate at which the difference would count as proven; None: too few steps,
                           or too small to be tested
    needed                 cannot_tell: how many steps (recordings, where a side has several) of each side would
                           tell; None: not known, or more than 10,000
    """

    base_ns: float | None
    candidate_ns: float | None
    delta_ns: float | None
    delta_ratio: float | None
    low_ns: float | None
    high_ns: float | None
    q: float | None
    verdict: Verdict
    needed: int | None = None

    @property
    def significant(self) -> bool:
        """Whether the change is real and large enough to matter."""
        return self.verdict in ("slower", "faster")


NOT_KNOWN = Change(None, None, None, None, None, None, None, "unknown")

NO_TIME = Change(0.0, 0.0, 0.0, 0.0, None, None, None, "equal")


class Changes(msgspec.Struct, frozen=True):
    """The change of each row of each block, and under "step" that of the step itself.

    typical          ns of a typical step of the base and of the candidate
    autocorrelation  of the steps, 0..1
    """

    of: Mapping[str, list[Change]]
    typical: tuple[float, float]
    autocorrelation: float


def changes(pair: Pair, min_effect: float, blocks: Mapping[str, Values]) -> Changes:
    """All rows judged: the step is a question of its own, the rows of all blocks are corrected together for being
    many."""
    step = step_durations(pair.base), step_durations(pair.candidate)
    pairs = {"step": step, **blocks}
    first, second = (np.concatenate([values[side] for values in pairs.values()]) for side in (0, 1))
    evidence = weigh(first, second, _rules(pair, min_effect, step[0]), alone=1)
    equal = _equal(first, second)
    rows = iter(range(len(first)))
    return Changes(
        of={
            name: [_change(evidence, row, bool(equal[row])) for row in islice(rows, len(values[0]))]
            for name, values in pairs.items()
        },
        typical=(float(evidence.typical[0, 0]), float(evidence.typical[1, 0])),
        autocorrelation=float(evidence.rho[0]),
    )


def _equal(base: Float64, candidate: Float64) -> Bool:
    """bool[rows]: the same value in each step, or none at all on either side."""
    if base.shape == candidate.shape:
        equal: Bool = np.all(base == candidate, axis=1)
        return equal
    nothing: Bool = ~(np.any(base, axis=1) | np.any(candidate, axis=1))
    return nothing


def _change(evidence: Evidence, row: int, equal: bool) -> Change:
    base, delta = float(evidence.base[row]), float(evidence.delta[row])
    verdict = _verdict(evidence, row, equal)
    needed = float(evidence.needed[row])
    return Change(
        base_ns=base,
        candidate_ns=float(evidence.candidate[row]),
        delta_ns=delta,
        delta_ratio=delta / base if base else (0.0 if delta == 0 else None),
        low_ns=_known(evidence.low[row]),
        high_ns=_known(evidence.high[row]),
        q=_known(evidence.q[row]),
        verdict=verdict,
        needed=int(needed) if verdict == "cannot_tell" and np.isfinite(needed) else None,
    )


def _verdict(evidence: Evidence, row: int, equal: bool) -> Verdict:
    if equal:
        return "equal"
    if evidence.changed[row]:
        return "slower" if evidence.typical[1, row] > evidence.typical[0, row] else "faster"
    return "unchanged" if evidence.unchanged[row] else "cannot_tell"


def _known(value: np.float64) -> float | None:
    return None if np.isnan(value) else float(value)


def _rules(pair: Pair, min_effect: float, base: Float64) -> Rules:
    return Rules(
        step=float(base.mean()) if base.size else 0.0,
        min_effect=min_effect,
        resolution=float(max(_tick(trace) for trace in (*pair.base, *pair.candidate))),
        recordings=(step_counts(pair.base), step_counts(pair.candidate)),
        one_run=pair.one_run,
    )


def _tick(trace: Trace) -> int:
    """ns between two ticks of the clock: old traces count whole microseconds."""
    timed = trace.events.start[trace.events.duration > 0]
    return 1 if (timed % 1000).any() else 1000
