"""Serving by origin: which module and operator takes the kernel time of an iteration."""

from __future__ import annotations

from typing import Literal

import msgspec

from torch_tb_profiler.analyses.serving.origins import IterationWork, iteration_work
from torch_tb_profiler.analyses.serving.summary import phase_summaries
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.base.format import format_duration, format_ratio
from torch_tb_profiler.base.grammar import capitalize
from torch_tb_profiler.model.serving.iterations import no_iterations_reason
from torch_tb_profiler.model.serving.labels import PHASES
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import TraceView
from torch_tb_profiler.views._shared.text import Phrase, Text, link, sentences, text

MAX_ROWS = 60
"""Most rows in an answer; the rest is summed up."""


class ServingOriginsParams(msgspec.Struct, frozen=True):
    """Iterations of which phase; by default decode, or the most frequent one."""

    phase: Literal["", "prefill", "decode", "mixed"] = ""


class ServingOriginRow(msgspec.Struct, frozen=True):
    """Kernels with one family and one origin; null where it is unknown, and `reason` says why.

    module    path of the `nn.Module` call, outermost first
    how       launch, graph node, capture (of a replayed graph) or compile record
    time_ns   mean of an iteration; share: of all its kernels
    kernels   in all iterations of the phase
    event     row of the longest of them
    """

    family: str
    module: str | None
    operator: str | None
    line: str | None
    how: str | None
    reason: str | None
    kernels: int
    time_ns: float
    share: float
    event: int


class ServingOrigins(msgspec.Struct, frozen=True):
    """What of the model takes the kernel time of an average iteration of one phase.

    kernel_ns   sum of its kernels' durations, mean of an iteration; known_ns: of those whose module or operator is
                known
    others_ns   beyond the rows
    """

    headline: Text
    phase: str | None
    iterations: int
    kernel_ns: float
    known_ns: float
    rows: list[ServingOriginRow]
    others_ns: float


def build_origins(trace: Trace, params: ServingOriginsParams) -> ServingOrigins:
    """Build the work of one phase. Raises NotFoundError if the trace has no such iterations."""
    phases = {each.phase: each.iterations for each in phase_summaries(trace)}
    if not phases:
        raise NotFoundError(f"no iterations of an inference engine: {no_iterations_reason(trace)}")
    phase: str | None = params.phase or ("decode" if "decode" in phases else next(iter(phases)))
    if phase not in phases:
        names = ", ".join(each or "unknown" for each in phases)
        raise NotFoundError(f"no iteration is {phase} only", hint=f"phases: {names}")
    count = phases[phase]
    work = iteration_work(trace, PHASES.index(phase) if phase in PHASES else -1)
    total = sum(each.time_ns for each in work)
    known = sum(each.time_ns for each in work if each.module or each.operator)
    rows = [_build_row(each, count, total) for each in work[:MAX_ROWS]]
    return ServingOrigins(
        headline=_headline(work, phase, count, total, known),
        phase=phase,
        iterations=count,
        kernel_ns=total / count,
        known_ns=known / count,
        rows=rows,
        others_ns=sum(each.time_ns for each in work[MAX_ROWS:]) / count,
    )


def _build_row(work: IterationWork, count: int, total: int) -> ServingOriginRow:
    return ServingOriginRow(
        family=work.family,
        module=work.module,
        operator=work.operator,
        line=work.line,
        how=work.how,
        reason=work.reason,
        kernels=work.kernels,
        time_ns=work.time_ns / count,
        share=work.time_ns / total if total else 0.0,
        event=work.longest,
    )


def _headline(work: list[IterationWork], phase: str | None, count: int, total: int, known: int) -> Text:
    """Return which origin takes most, and how much of the time has none."""
    if total == 0:
        return text("These iterations ran no kernels.")
    named = next((each for each in work if each.module or each.operator), None)
    unknown = next((each.reason for each in work if not (each.module or each.operator) and each.reason), None)
    return sentences(
        text(
            "{family} in {place} takes {time} of {all} of kernel time in an average {phase}iteration, more than "
            "any other known origin.",
            family=Phrase(capitalize(named.family), link("trace", event=str(named.longest))),
            place=named.module or named.operator or "",
            phase=f"{phase} " if phase else "",
            time=format_duration(named.time_ns / count),
            all=format_duration(total / count),
        )
        if named is not None
        else (),
        text(
            "The origin of {share} is unknown{reason}.",
            share=format_ratio(1 - known / total),
            reason=f": {unknown}" if unknown else "",
        )
        if known < total
        else (),
    )


VIEW = TraceView(
    "serving/origins",
    "Serving by origin",
    ServingOriginsParams,
    ServingOrigins,
    build_origins,
    cached="on_request",
    answers="Which module and operator takes the kernel time of an average iteration.",
)
