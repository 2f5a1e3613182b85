"""Origins: which part of the program the kernels come from, and why that is unknown for some."""

from __future__ import annotations

import msgspec

from torch_tb_profiler.analyses.origins import (
    OriginCoverage,
    coverage,
    generated_source,
    index_of_event,
    origin_groups,
    origin_values,
)
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.base.format import format_duration
from torch_tb_profiler.base.grammar import join_words, plural
from torch_tb_profiler.model.kernels.short_names import display_name
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import Page, Tab, TraceView
from torch_tb_profiler.views._shared.availability import origins_reason
from torch_tb_profiler.views._shared.origins import coverage_headline
from torch_tb_profiler.views._shared.text import Text, sentences, text


class OriginsParams(Page, frozen=True, kw_only=True):
    """`capture` names a run of the same log folder that holds captures of this run's graphs."""

    capture: str | None = None


class ReasonRow(msgspec.Struct, frozen=True):
    """Why something is unknown of the origin of some kernels; `ns` is their total time."""

    reason: str
    kernels: int
    ns: int


class CaptureRow(msgspec.Struct, frozen=True):
    """Captures of graphs: where they are, for which batch size, and how many replays they explain.

    size      batch size, null if none is named
    captures  number of captures of this source and size
    launches  in all of them
    """

    source: str
    size: int | None
    captures: int
    launches: int
    replays: int


class OriginRow(msgspec.Struct, frozen=True):
    """Kernels of one name and one origin; what is unknown is null, with the `reason`.

    how      launch, graph node, capture, compile record
    module   path, outermost first, joined by "/"
    line     `file:line` of the innermost frame of the program
    shapes   input shapes of the operator, as JSON
    event    the longest of them, for the timeline
    """

    name: str
    short_name: str
    how: str | None
    operator: str | None
    module: str | None
    line: str | None
    shapes: str | None
    nodes: list[str] | None
    region: str | None
    compile_id: str | None
    backward: bool | None
    reason: str | None
    event: int
    kernels: int
    ns: int


class OriginsPayload(msgspec.Struct, frozen=True):
    """How much of the kernel time is traced to the program, and why the rest isn't.

    kernel_ns  total time of all kernels; without a device, of the compiled kernels on the host
    known_ns   the part whose operator, module or line is known
    how_ns     the part that each source explains first
    reasons    why something is unknown, most time first
    captures   captures of graphs in this trace and in the files beside it
    rows       kernels by name and origin, most time first; `total` is their number on all pages
    """

    headline: Text
    details: Text
    kernels: int
    kernel_ns: int
    known_ns: dict[str, int]
    how_ns: dict[str, int]
    replays: int
    reasons: list[ReasonRow]
    captures: list[CaptureRow]
    total: int
    rows: list[OriginRow]


class OriginEventParams(msgspec.Struct, frozen=True):
    """`event`: row number in the trace."""

    event: int


class SourceLine(msgspec.Struct, frozen=True):
    """A source line of the program."""

    file: str
    line: int


class OriginEvent(msgspec.Struct, frozen=True):
    """Where an event comes from; what is unknown is null, with the `reason`.

    has_origin  false for an event that is neither device work nor a call of a compiled kernel
    modules     outermost first
    lines       innermost first; of a compiled kernel, one for each statement that it computes
    nodes       FX nodes of the program that a compiled kernel computes
    source      what torch.compile generated for it
    """

    event: int
    has_origin: bool
    how: str | None
    operator: str | None
    modules: list[str] | None
    lines: list[SourceLine] | None
    shapes: str | None
    nodes: list[str] | None
    region: str | None
    compile_id: str | None
    backward: bool | None
    reason: str | None
    source: str | None


def build(trace: Trace, params: OriginsParams) -> OriginsPayload:
    """Build the coverage of origins, and a page of the kernels by origin."""
    covered, groups = coverage(trace), origin_groups(trace)
    page = params.rows
    rows = [
        _build_row(trace, *values)
        for values in zip(
            groups.first[page].tolist(),
            groups.longest[page].tolist(),
            groups.counts[page].tolist(),
            groups.ns[page].tolist(),
            strict=True,
        )
    ]
    return OriginsPayload(
        headline=coverage_headline(covered),
        details=_details(covered),
        kernels=covered.kernels,
        kernel_ns=covered.kernel_ns,
        known_ns=covered.known_ns,
        how_ns=covered.how_ns,
        replays=covered.replays,
        reasons=[ReasonRow(each.reason, each.kernels, each.ns) for each in covered.lost],
        captures=[
            CaptureRow(each.source, each.size, each.captures, each.launches, each.replays)
            for each in covered.captures
        ],
        total=len(groups.first),
        rows=rows,
    )


def _build_row(trace: Trace, first: int, longest: int, count: int, ns: int) -> OriginRow:
    values = origin_values(trace, first)
    name = trace.strings[int(trace.events.name[longest])]
    modules, lines, nodes = values["modules"], values["lines"], values["nodes"]
    return OriginRow(
        name=name,
        short_name=display_name(trace, longest, name),
        how=values["how"],
        operator=values["operator"],
        module=None if modules is None else "/".join(modules),
        line=None if lines is None else lines[0],
        shapes=values["shapes"],
        nodes=None if nodes is None else list(nodes),
        region=values["region"],
        compile_id=values["compile_id"],
        backward=values["backward"],
        reason=values["reason"],
        event=longest,
        kernels=count,
        ns=ns,
    )


def _details(covered: OriginCoverage) -> Text:
    """Name the sources, and the reason that costs most."""
    sources = [f"{name} ({format_duration(ns)})" for name, ns in covered.how_ns.items()]
    found = text("Traced by {sources}.", sources=join_words(sources)) if sources else ()
    if not covered.lost:
        return found
    first = covered.lost[0]
    lost = text(
        "Main gap ({kernels}, {time}): {reason}.",
        reason=first.reason,
        kernels=plural(first.kernels, "kernel"),
        time=format_duration(first.ns),
    )
    return sentences(found, lost)


def build_origin(trace: Trace, params: OriginEventParams) -> OriginEvent:
    """Build the origin of one event. Raise NotFoundError if the trace has no such row."""
    row = params.event
    if not 0 <= row < len(trace):
        raise NotFoundError(f"there is no event {row}", hint=f"events: 0 to {len(trace) - 1}")
    index = index_of_event(trace, row)
    if index is None:
        return OriginEvent(row, False, *[None] * 11)
    values = origin_values(trace, index)
    modules, lines, nodes = values["modules"], values["lines"], values["nodes"]
    return OriginEvent(
        event=row,
        has_origin=True,
        how=values["how"],
        operator=values["operator"],
        modules=None if modules is None else list(modules),
        lines=None if lines is None else [_source_line(line) for line in lines],
        shapes=values["shapes"],
        nodes=None if nodes is None else list(nodes),
        region=values["region"],
        compile_id=values["compile_id"],
        backward=values["backward"],
        reason=values["reason"],
        source=generated_source(trace, row),
    )


def _source_line(text: str) -> SourceLine:
    file, _, line = text.rpartition(":")
    return SourceLine(file, int(line))


TAB = Tab(
    "Where the time goes",
    TraceView("origins", "Origins", OriginsParams, OriginsPayload, build, cached="on_request", captures=True),
    origins_reason,
    (TraceView("origins/event", "Origin of an event", OriginEventParams, OriginEvent, build_origin),),
)
