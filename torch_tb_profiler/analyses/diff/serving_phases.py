"""Iterations of two inference engines compared by phase: per iteration, and per token that goes through the model.

An average iteration depends on how many prefills are among them, so a diff of two engines is about each phase.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from torch_tb_profiler.analyses.diff.changes import UNKNOWN_CHANGE, Change, judge_values
from torch_tb_profiler.model.serving.iterations import ServingIterations, serving_iterations
from torch_tb_profiler.model.serving.labels import PHASES
from torch_tb_profiler.model.trace import ABSENT, Float64, Int64, Recordings, TracePair


class ComparedPhase(msgspec.Struct, frozen=True):
    """The iterations of one phase on both sides, base first.

    phase       one of PHASES
    iterations  how many of all recordings
    tokens      mean number of tokens in one: of prompts, and one per decoding request; None where unknown
    iteration   change of their duration, without waits for requests
    per_token   change of the time per token: all of their time over all of their tokens
    """

    phase: str
    iterations: tuple[int, int]
    tokens: tuple[float | None, float | None]
    iteration: Change
    per_token: Change


class _PhaseTimes(msgspec.Struct, frozen=True):
    """Iterations of one phase, recording after recording: durations int64[k] ns, tokens int64[k], counts."""

    durations: Int64
    tokens: Int64
    counts: list[int]

    @property
    def mean_tokens(self) -> float | None:
        known = len(self.tokens) > 0 and bool((self.tokens != ABSENT).all()) and int(self.tokens.sum()) > 0
        return float(self.tokens.mean()) if known else None


def compare_phases(
    pair: TracePair, durations: tuple[Sequence[Int64], Sequence[Int64]], min_effect: float
) -> tuple[ComparedPhase, ...]:
    """Return the phases that either side has; none unless all recordings are of inference engines.

    durations  of the iterations of each recording of the base and of the candidate, int64[k] ns each
    """
    if not all(serving_iterations(trace) is not None for trace in (*pair.base, *pair.candidate)):
        return ()
    compared = []
    for number, phase in enumerate(PHASES):
        base, candidate = (
            _build_phase_times(side, times, number)
            for side, times in zip((pair.base, pair.candidate), durations, strict=True)
        )
        if len(base.durations) or len(candidate.durations):
            compared.append(_compare(phase, base, candidate, pair, min_effect))
    return tuple(compared)


def _compare(
    phase: str, base: _PhaseTimes, candidate: _PhaseTimes, pair: TracePair, min_effect: float
) -> ComparedPhase:
    tokens = base.mean_tokens, candidate.mean_tokens
    recordings = base.counts, candidate.counts
    has_both = bool(len(base.durations) and len(candidate.durations))
    iteration = per_token = UNKNOWN_CHANGE
    if has_both:
        durations = base.durations.astype(np.float64), candidate.durations.astype(np.float64)
        iteration = judge_values(pair, min_effect, durations, recordings)
    if has_both and None not in tokens:
        ratios = _divide_by_tokens(base), _divide_by_tokens(candidate)
        per_token = judge_values(pair, min_effect, ratios, recordings, per=max(filter(None, tokens)))
    return ComparedPhase(phase, (len(base.durations), len(candidate.durations)), tokens, iteration, per_token)


def _divide_by_tokens(side: _PhaseTimes) -> Float64:
    """Return values whose mean is all time over all tokens, and whose scatter is that of this ratio, float64[k].

    Ratio estimation (Cochran, Sampling Techniques, 1977, chapter 6): the residual of each iteration from the
    ratio, relative to the mean number of tokens.
    """
    tokens = side.tokens.astype(np.float64)
    ratio = float(side.durations.sum()) / float(tokens.sum())
    values: Float64 = ratio + (side.durations - ratio * tokens) / float(tokens.mean())
    return values


def _build_phase_times(recordings: Recordings, durations: Sequence[Int64], number: int) -> _PhaseTimes:
    """Return the iterations of one phase of all recordings, which are of inference engines."""
    masks, tokens = [], []
    for trace in recordings:
        found = serving_iterations(trace)
        assert found is not None
        mask = found.phase == number
        masks.append(mask)
        tokens.append(_count_tokens(found)[mask])
    mine = [each[mask] for each, mask in zip(durations, masks, strict=True)]
    return _PhaseTimes(np.concatenate(mine), np.concatenate(tokens), [int(mask.sum()) for mask in masks])


def _count_tokens(found: ServingIterations) -> Int64:
    """Return the tokens of each iteration, int64[k]; ABSENT where the labels don't count them."""
    known = (found.prompt_tokens != ABSENT) & (found.decode_requests != ABSENT)
    # With speculative decoding a request makes more than one token, and the labels don't say how many.
    known &= ~((found.decode_requests > 0) & found.speculative)
    tokens: Int64 = np.where(known, found.prompt_tokens + found.decode_requests, ABSENT)
    return tokens
