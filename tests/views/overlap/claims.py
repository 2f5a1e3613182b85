"""Each sentence of Overlap on how much communication is exposed, and why: where it holds, and where it doesn't."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

from tests.analyses.overlap.test_dips import DIPS, LOW, TYPICAL, spread
from tests.support.claims import Claim, ReadSentences
from tests.support.producers.aorta import Busy, line, smi_output
from tests.support.random_jobs.surfaces import found_texts
from torch_tb_profiler.analyses.overlap.summary import summarize_overlap
from torch_tb_profiler.ingest import read_trace
from torch_tb_profiler.model.trace import Trace, TracePair
from torch_tb_profiler.view import Member, Members, NoParams
from torch_tb_profiler.views.overlap.build import build, build_comparison
from torch_tb_profiler.views.overlap.payload import OverlapParams

Iteration = Sequence[Busy]


def read(iterations: Sequence[Iteration], clocks: Sequence[int] = ()) -> Trace:
    """Return a rank's iterations of 200 us, with what `rocm-smi` reads of its GPU."""
    lines = []
    for step, ranges in enumerate(iterations):
        more: dict[str, Any] = {}
        if clocks:
            more["rocm_smi_output"] = smi_output({"sclk clock level: 1": f"({clocks[step]}Mhz)"})
        lines.append(line(step, ranges, 200, **more))
    return read_trace(io.BytesIO("\n".join(map(json.dumps, lines)).encode()))


def of(*ranks: Trace) -> str:
    members = (
        Member(f"rank{rank}", rank, "1", "ready", None, summarize_overlap(trace))
        for rank, trace in enumerate(ranks)
    )
    return " ".join(text for _, text in found_texts(build(Members(members), OverlapParams()), ""))


def ranks(*iterations: Iteration) -> ReadSentences:
    """Read the sentences about ranks with one iteration each."""
    return lambda: of(*(read([each]) for each in iterations))


def compared(base: Iteration, candidate: Iteration) -> ReadSentences:
    pair = TracePair([read([base])], [read([candidate])], False)
    return lambda: " ".join(text for _, text in found_texts(build_comparison(pair, NoParams()), ""))


def many(overlaps: Sequence[int], clocks: Sequence[int] = ()) -> ReadSentences:
    """Read the sentences about iterations that overlap for so many us."""
    return lambda: of(read([computing(100, 100 - each, 150) for each in overlaps], clocks))


def computing(until: int, start: int, end: int, stream: str = "allreduce") -> list[Busy]:
    """Return an iteration that computes until then, and communicates from start to end."""
    return [Busy("compute", 0, until), Busy(stream, start, end)]


HALF = computing(100, 50, 150)
"""50 of 100 us of computation and of communication overlap."""
HIDDEN = computing(100, 20, 80)
OVERLAP = spread(DIPS, 30, 60)

CLAIMS = [
    Claim(
        "No collective was recorded on a stream{so_far}.",
        "No collective was recorded on a stream.",
        ranks([Busy("compute", 0, 100), Busy("aux", 100, 120)]),
        "one is",
        ranks(HALF),
    ),
    Claim(
        "All communication overlaps with computation{so_far}.",
        "All communication overlaps with computation.",
        ranks(HIDDEN),
        "it ends 1 us later than the computation",
        ranks(computing(100, 20, 101)),
    ),
    Claim(
        "Exposed communication takes {exposed} of an average iteration ({share}), {most} of it in {collective}"
        "{so_far}.",
        r"Exposed communication takes 50\.0 µs of an average iteration \(25%\), most of it in all-reduce\.",
        ranks(HALF),
        "the computation takes longer",
        ranks(computing(120, 50, 150)),
    ),
    Claim(
        "Exposed communication takes {exposed} of an average iteration ({share}), {most} of it in {collective}"
        "{so_far}.",
        "most of it in all-reduce",
        ranks([*computing(100, 100, 150), Busy("reducescatter", 150, 190)]),
        "another takes exactly half",
        ranks([*computing(100, 100, 150), Busy("reducescatter", 150, 200)]),
    ),
    Claim(
        "Exposed communication takes {exposed} of an average iteration ({share}), {most} of it in {collective}"
        "{so_far}.",
        "most of it in all-reduce",
        ranks([*computing(100, 100, 150), Busy("reducescatter", 150, 190)]),
        "three share it, and none has half",
        ranks(
            [
                *computing(50, 50, 100),
                Busy("reducescatter", 100, 140),
                Busy("aux", 140, 170, "all_gather_into_tensor"),
            ]
        ),
    ),
    Claim(
        "{ratio} of computation overlaps with communication (overlap_ratio){hidden}. "
        "Means over {iterations} of {ranks}.",
        r"50% of computation overlaps with communication \(overlap_ratio\); 50% of communication is overlapped\. "
        r"Means over 1 iteration of 1 rank\.",
        ranks(HALF),
        "communication begins later",
        ranks(computing(100, 90, 150)),
    ),
    Claim(
        " {worker} has the most exposed communication: {time} per iteration.",
        r"rank1 has the most exposed communication: 50\.0 µs per iteration\.",
        ranks(HIDDEN, HALF),
        "another rank has more",
        ranks(computing(100, 50, 170), HALF),
    ),
    Claim(
        "All recorded totals match the ranges.",
        "All recorded totals match the ranges.",
        ranks(HALF),
        "the recorder ends two ranges with one",
        ranks([Busy("compute", 0, 30), Busy("compute", 20, 60), Busy("allreduce", 20, 80)]),
    ),
    Claim(
        "{count} of {all} recorded totals differ from the ranges: {names}.",
        r"\d of \d recorded totals differ from the ranges: [^.]*stream compute",
        ranks([Busy("compute", 0, 30), Busy("compute", 20, 60), Busy("allreduce", 20, 80)]),
        "the ranges are one",
        ranks(computing(60, 20, 80)),
    ),
    Claim(
        "{candidate} of computation overlaps with communication, compared with {base} in the base run: {points} "
        "points.",
        r"60% of computation overlaps with communication, compared with 50% in the base run: \+10\.0 points\.",
        compared(HALF, computing(100, 40, 150)),
        "the two runs are exchanged",
        compared(computing(100, 40, 150), HALF),
    ),
    Claim(
        "No iteration's overlap is below {share} of its rank's median.",
        "No iteration's overlap is below ",
        many([60] * 40),
        "five overlap half as much",
        many(OVERLAP),
    ),
    Claim(
        "Overlap dips in {count}, but not together with unusual readings: {names}.",
        r"Overlap dips in 5 of 40 iterations, but not together with unusual readings: clock\.",
        many(OVERLAP, [LOW if step % 2 else TYPICAL for step in range(40)]),
        "the clock is low in these",
        many(OVERLAP, spread(DIPS, LOW, TYPICAL)),
    ),
    Claim(
        "Overlap dips in {count}. The cause is unknown: {reason}.",
        "Overlap dips in 5 of 40 iterations. The cause is unknown: no output of `rocm-smi` was recorded",
        many(OVERLAP),
        "the clock is recorded",
        many(OVERLAP, [TYPICAL] * 40),
    ),
    Claim(
        "{strength} evidence that dips in overlap coincide with {what} in {dips_with} of {dips}, "
        "and in {others_with} of {others}.",
        "Strong evidence that dips in overlap coincide with throttling: the clock is low in 5 of 5 dips, and in 1 "
        "of 35 other iterations.",
        many(OVERLAP, spread((*DIPS, 20), LOW, TYPICAL)),
        "all dips are in one stretch, which is one event",
        many(spread(range(20, 28), 30, 60), spread(range(20, 28), LOW, TYPICAL)),
    ),
]

NO_CLAIMS = {
    "No iteration has been read yet.": "progress",
    "No totals were recorded; all figures are recomputed from the ranges.": "what was read",
    "One of the two sides has no iterations.": "why nothing is said",
    "Dips in overlap can be found once a rank has {least} iterations with any overlap.": "why nothing is said",
}
"""Templates that say nothing of who, why, or how much, with the reason."""
