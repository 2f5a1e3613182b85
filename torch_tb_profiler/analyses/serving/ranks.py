"""Iterations of an engine that several ranks run together: counted once, and which rank is the slowest.

rank 0   [ iteration 7 ........ all-reduce ][ iteration 8 ... all-reduce ]
rank 1   [ iteration 7 .. all-reduce waits ][ iteration 8 ... all-reduce ]     one engine, two ranks
rank 2   [ iteration 3 .........] [ iteration 4 .....] [ iteration 5 ]         another engine: other batches

Ranks of tensor parallelism run the same batches and communicate in them. Ranks with other batches, or without
communication, are engines of their own, whose tokens add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
import numpy as np
import numpy.typing as npt

from torch_tb_profiler.analyses.serving.summary import serving_rates
from torch_tb_profiler.base.intervals import merge_by_owner
from torch_tb_profiler.model.communication.events import is_communication_kernel
from torch_tb_profiler.model.kinds import Kind, event_ends, rows_of_kind
from torch_tb_profiler.model.serving.iterations import serving_iterations
from torch_tb_profiler.model.trace import Bool, Float64, Int64, Trace

RANK_ITERATION = np.dtype([("batch", "<u8"), ("own", "<i8"), ("communication", "<i8")])
"""One iteration of a rank.

batch          of what it computes; the same for the ranks of an engine
own            ns in which kernels ran that don't communicate
communication  ns in which kernels ran that do, waits for other ranks included
"""

MAX_SHIFT = 64
"""Most iterations by which recordings of two ranks may begin apart."""

MAX_COMPARED = 4096
"""Iterations that decide by how many two recordings are apart."""

MIN_SAME_SHARE = 0.95
"""Minimum share of the same batches, in what both recorded, for two ranks to be of one engine."""

MIN_SHARED = 0.5
"""Minimum share of the shorter recording that both must have recorded."""

MIN_LATE_SHARE = 0.02
"""Kernels of the slowest rank take at least this share longer than the others' median."""

MIN_LATE_ITERATIONS = 0.5
"""Minimum share of the iterations in which the slowest rank is the slowest."""


class RankIterations(msgspec.Struct, frozen=True):
    """The iterations of one rank: `parts` are the bytes of an array of RANK_ITERATION.

    span_ns, output_tokens, prompt_tokens  of the whole recording; None where unknown
    """

    engine: str | None
    span_ns: int
    output_tokens: int | None
    prompt_tokens: int | None
    parts: Annotated[bytes, RANK_ITERATION]

    def table(self) -> npt.NDArray[np.void]:
        """Return the iterations as a structured array (read-only)."""
        return np.frombuffer(self.parts, RANK_ITERATION)


class EngineRanks(msgspec.Struct, frozen=True):
    """The ranks of one engine.

    members        positions among the given ranks, in their order
    iterations     that all of them recorded
    own, communication  float64[members] mean ns of an iteration
    slowest        position in `members`, None if none stands out or there is only one
    others_ns      median of the other ranks' own kernels, mean of an iteration; 0.0 without others
    extra_ns       by which its own kernels take longer than the median of the others', mean of an iteration
    slowest_share  share of the iterations in which it is the slowest
    """

    members: tuple[int, ...]
    iterations: int
    own: Float64
    communication: Float64
    slowest: int | None
    others_ns: float
    extra_ns: float
    slowest_share: float


def rank_iterations(trace: Trace) -> RankIterations:
    """Return the iterations of one rank; none if the trace has none."""
    found, rates = serving_iterations(trace), serving_rates(trace)
    if found is None or rates is None:
        return RankIterations(None, 0, None, None, b"")
    table = np.zeros(len(found), RANK_ITERATION)
    counts = (
        *(found.phase, found.requests, found.context_requests, found.prompt_tokens),
        *(found.decode_requests, found.decode_tokens, found.kv_tokens),
    )
    batch = np.zeros(len(found), np.uint64)
    for values in counts:
        batch = batch * np.uint64(1_000_003) + values.astype(np.int64).view(np.uint64)
    table["batch"] = batch
    rows = rows_of_kind(trace, Kind.KERNEL)
    rows = rows[found.owner[rows] >= 0]
    communicates = is_communication_kernel(trace)[rows]
    for name, chosen in (("own", rows[~communicates]), ("communication", rows[communicates])):
        owner = found.owner[chosen].astype(np.int64)
        merged = merge_by_owner(owner, trace.events.start[chosen], event_ends(trace)[chosen])
        table[name] = merged.totals(len(found))
    return RankIterations(found.engine, rates.span_ns, rates.output_tokens, rates.prompt_tokens, table.tobytes())


def join_ranks(ranks: Sequence[RankIterations]) -> list[EngineRanks]:
    """Return the engines that the ranks run, in order of their first ranks."""
    tables = [rank.table() for rank in ranks]
    joined: list[
        list[tuple[int, int]]
    ] = []  # per engine: (rank, its first iteration minus that of the first rank)
    for i, table in enumerate(tables):
        for members in joined:
            shift = _shift_between(tables[members[0][0]], table)
            if shift is not None:
                members.append((i, shift))
                break
        else:
            joined.append([(i, 0)])
    return [_compare(members, tables) for members in joined]


def _shift_between(first: npt.NDArray[np.void], other: npt.NDArray[np.void]) -> int | None:
    """Return which iteration of `other` is iteration 0 of `first`, or None if they are of different engines."""
    if not first["communication"].any() or not other["communication"].any():
        return None
    head, tail = first["batch"][:MAX_COMPARED], other["batch"][:MAX_COMPARED]
    shifts = sorted(range(-MAX_SHIFT, MAX_SHIFT + 1), key=abs)
    shift = max(shifts, key=lambda shift: int(_compare_batches(head, tail, shift).sum()))
    same = _compare_batches(first["batch"], other["batch"], shift)
    enough = len(same) >= max(1, MIN_SHARED * min(len(first), len(other)))
    return shift if enough and same.mean() >= MIN_SAME_SHARE else None


def _compare_batches(first: npt.NDArray[np.uint64], other: npt.NDArray[np.uint64], shift: int) -> Bool:
    """Return in which iterations of both the batches are the same; `other` begins `shift` iterations earlier."""
    first, other = first[max(-shift, 0) :], other[max(shift, 0) :]
    count = min(len(first), len(other))
    same: Bool = first[:count] == other[:count]
    return same


def _compare(members: list[tuple[int, int]], tables: list[npt.NDArray[np.void]]) -> EngineRanks:
    begin = max(-shift for _, shift in members)
    count = min(len(tables[rank]) - shift for rank, shift in members) - begin
    own, communication = (
        np.array([tables[rank][name][begin + shift :][:count] for rank, shift in members])
        for name in ("own", "communication")
    )
    slowest, others, extra, share = _find_slowest(own)
    return EngineRanks(
        tuple(rank for rank, _ in members),
        count,
        own.mean(1),
        communication.mean(1),
        slowest,
        others,
        extra,
        share,
    )


def _find_slowest(own: Int64) -> tuple[int | None, float, float, float]:
    """Return (row, median of the others, extra time, share of iterations as the slowest) of int64[ranks, k]."""
    if len(own) < 2:
        return None, 0.0, 0.0, 0.0
    slowest = int(own.mean(1).argmax())
    others = np.delete(own, slowest, 0)
    median = float(np.median(others, 0).mean())
    extra = float(own[slowest].mean()) - median
    share = float((own[slowest] > others.max(0)).mean())
    stands_out = extra >= MIN_LATE_SHARE * median and share >= MIN_LATE_ITERATIONS
    return slowest if stands_out and extra > 0 else None, median, extra, share
