"""Changes of times per step between two sides, each with a verdict. All are judged together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.diff.counted_steps import SideValues, step_counts, step_durations
from torch_tb_profiler.analyses.shared.significance import ChangeEvidence, ChangeRules, compare_steps
from torch_tb_profiler.model.trace import Bool, Float64, Trace, TracePair

Verdict = Literal["slower", "faster", "unchanged", "equal", "cannot_tell", "unknown"]
"""The verdict on a change.

slower, faster  proven, and at least the smallest change that matters
unchanged       the entire interval lies within plus and minus the smallest change that matters
equal           exactly the same times in all steps
cannot_tell     inconclusive: neither a change nor its absence is proven
unknown         at least one side doesn't record the time
"""


class Change(msgspec.Struct, frozen=True):
    """A time per step on both sides.

    base_ns, candidate_ns  means over the counted steps; None where not recorded, see `reasons` of the payload
    delta_ns               candidate - base
    delta_ratio            delta / base; None where the base has none
    low_ns, high_ns        interval of the change of a typical step at `confidence`; None with too few steps
    q                      false discovery rate at which the difference would count as proven; None with too few
                           steps, or if the time is too small to be tested
    needed                 for cannot_tell: steps per side (recordings, where a side has several) that would settle
                           it; None if that can't be estimated or exceeds 10,000
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
        """Return whether the change is proven and large enough to matter."""
        return self.verdict in ("slower", "faster")


UNKNOWN_CHANGE = Change(None, None, None, None, None, None, None, "unknown")

ZERO_CHANGE = Change(0.0, 0.0, 0.0, 0.0, None, None, None, "equal")


class JudgedChanges(msgspec.Struct, frozen=True):
    """The change of each row of each block.

    by_block         block -> changes of its rows; "step" holds the change of the step itself
    typical          ns of a typical step of the base and of the candidate
    autocorrelation  of the steps, 0..1
    """

    by_block: Mapping[str, list[Change]]
    typical: tuple[float, float]
    autocorrelation: float


def judge_changes(pair: TracePair, min_effect: float, blocks: Mapping[str, SideValues]) -> JudgedChanges:
    """Judge the step and all rows of `blocks`.

    The step is tested alone; the rows of all blocks are corrected together for multiple testing.
    """
    step = step_durations(pair.base), step_durations(pair.candidate)
    values_of = {"step": step, **blocks}
    base, candidate = (np.concatenate([values[side] for values in values_of.values()]) for side in (0, 1))
    evidence = compare_steps(base, candidate, _build_rules(pair, min_effect, step[0]), alone=1)
    identical = _identical_rows(base, candidate)
    rows = iter(range(len(base)))
    return JudgedChanges(
        by_block={
            name: [_change(evidence, row, bool(identical[row])) for row in islice(rows, len(values[0]))]
            for name, values in values_of.items()
        },
        typical=(float(evidence.typical[0, 0]), float(evidence.typical[1, 0])),
        autocorrelation=float(evidence.rho[0]),
    )


def judge_values(
    pair: TracePair,
    min_effect: float,
    values: tuple[Float64, Float64],
    recordings: tuple[Sequence[int], Sequence[int]],
    per: float = 1.0,
) -> Change:
    """Judge one row of values by itself, float64[k] of each side, recording after recording.

    recordings  how many values each recording of the base and of the candidate has
    per         what times were divided by, as the resolution of the clock then is
    """
    base, candidate = values[0][None, :], values[1][None, :]
    rules = msgspec.structs.replace(_build_rules(pair, min_effect, base), recordings=recordings)
    rules = msgspec.structs.replace(rules, resolution=rules.resolution / per)
    evidence = compare_steps(base, candidate, rules, alone=1)
    return _change(evidence, 0, bool(_identical_rows(base, candidate)[0]))


def scale_change(change: Change, factor: float) -> Change:
    """Return a change of values that are `factor` times as large, with the same verdict."""

    def scaled(value: float | None) -> float | None:
        return None if value is None else value * factor

    return msgspec.structs.replace(
        change,
        base_ns=scaled(change.base_ns),
        candidate_ns=scaled(change.candidate_ns),
        delta_ns=scaled(change.delta_ns),
        low_ns=scaled(change.low_ns),
        high_ns=scaled(change.high_ns),
    )


def _identical_rows(base: Float64, candidate: Float64) -> Bool:
    """Return which rows have the same value in each step, or no value on either side, bool[rows]."""
    if base.shape == candidate.shape:
        identical: Bool = np.all(base == candidate, axis=1)
        return identical
    empty: Bool = ~(np.any(base, axis=1) | np.any(candidate, axis=1))
    return empty


def _change(evidence: ChangeEvidence, row: int, identical: bool) -> Change:
    base, delta = float(evidence.base[row]), float(evidence.delta[row])
    verdict = _judge_row(evidence, row, identical)
    needed = float(evidence.needed[row])
    return Change(
        base_ns=base,
        candidate_ns=float(evidence.candidate[row]),
        delta_ns=delta,
        delta_ratio=delta / base if base else (0.0 if delta == 0 else None),
        low_ns=_none_if_nan(evidence.low[row]),
        high_ns=_none_if_nan(evidence.high[row]),
        q=_none_if_nan(evidence.q[row]),
        verdict=verdict,
        needed=_round_up(needed) if verdict == "cannot_tell" and np.isfinite(needed) else None,
    )


def _round_up(count: float) -> int:
    """Round up to two significant digits: an estimate from a few steps has no more."""
    unit: int = 10 ** max(0, len(str(int(count))) - 2)
    return math.ceil(count / unit) * unit


def _judge_row(evidence: ChangeEvidence, row: int, identical: bool) -> Verdict:
    if identical:
        return "equal"
    if evidence.changed[row]:
        return "slower" if evidence.typical[1, row] > evidence.typical[0, row] else "faster"
    return "unchanged" if evidence.unchanged[row] else "cannot_tell"


def _none_if_nan(value: np.float64) -> float | None:
    return None if np.isnan(value) else float(value)


def _build_rules(pair: TracePair, min_effect: float, base: Float64) -> ChangeRules:
    return ChangeRules(
        step=float(base.mean()) if base.size else 0.0,
        min_effect=min_effect,
        resolution=float(max(_clock_resolution(trace) for trace in (*pair.base, *pair.candidate))),
        recordings=(step_counts(pair.base), step_counts(pair.candidate)),
        one_run=pair.one_run,
    )


def _clock_resolution(trace: Trace) -> int:
    """Return the ns between two ticks of the clock: old traces count in microseconds."""
    timed = trace.events.start[trace.events.duration > 0]
    return 1 if (timed % 1000).any() else 1000
