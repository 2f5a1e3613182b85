"""Prompts that are computed again after their request was preempted, told from drafts of speculative decoding.

Both put more tokens than requests into what a label calls generation.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from torch_tb_profiler.model.trace import ABSENT, Int64

MAX_DRAFT_TOKENS = 16
"""More tokens than this per request that decodes are a recomputed prompt, not drafts."""

MIN_DRAFT_SHARE = 0.25
"""Minimum share of the iterations with more decode tokens than requests for the engine to be speculating."""


def split_recomputed(counts: Mapping[str, Int64]) -> tuple[float, Int64, Int64]:
    """Return (tokens per decoding request, recomputed tokens int64[k], requests that decode int64[k]).

    vLLM counts a request that resumes after preemption as generating, with all tokens of its prompt and output.
    Of r such requests among g, the others have one token each: their squares tell how many r is.
    """
    requests, tokens = counts["decode_requests"].copy(), counts["decode_tokens"]
    recomputed = np.zeros(len(requests), np.int64)
    known = (requests > 0) & (tokens > 0)
    excess = known & (tokens > requests)
    if not excess.any():
        return 1.0, recomputed, requests
    ratio = tokens[known] / requests[known]
    many = excess & (tokens > MAX_DRAFT_TOKENS * requests)
    if excess.sum() - many.sum() > MIN_DRAFT_SHARE * known.sum():
        drafts, again = float(np.median(ratio)), many
    else:
        drafts, again = 1.0, excess
    squares = counts["decode_squares"]
    for i in np.flatnonzero(again).tolist():
        resumed = _resumed_requests(int(requests[i]), int(tokens[i]), int(squares[i]))
        recomputed[i] = tokens[i] - (requests[i] - resumed)
        requests[i] -= resumed
    return drafts, recomputed, requests


def _resumed_requests(requests: int, tokens: int, squares: int) -> int:
    """Return the fewest resumed requests among `requests` that agree with the sums; 1 without squares."""
    if squares == ABSENT:
        return 1
    for resumed in range(1, requests + 1):
        rest = requests - resumed
        tokens_left, squares_left = tokens - rest, squares - rest
        # r numbers with this sum have squares between sum^2 / r and sum^2.
        if tokens_left**2 <= squares_left * resumed and squares_left <= tokens_left**2:
            return resumed
    return 1
