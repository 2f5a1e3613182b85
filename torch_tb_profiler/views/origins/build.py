"""Origins: which part of the program the kernels come from, and why that is unknown for some."""

from __future__ import annotations

from torch_tb_profiler.analyses.origins.coverage import Coverage, coverage
from torch_tb_profiler.analyses.origins.events import (
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
from torch_tb_profiler.view import Tab, TraceView
from torch_tb_profiler.views._shared.availability import origins_reason
from torch_tb_profiler.views._shared.origins import coverage_headline
from torch_tb_profiler.views._shared.text import Text, sentences, text
from torch_tb_profiler.views.origins.payload import (
    CaptureRow,
    OriginEvent,
    OriginEventParams,
    OriginRow,
    OriginsParams,
    OriginsPayload,
    ReasonRow,
    SourceLine,
)


def build(trace: Trace, params: OriginsParams) -> OriginsPayload:
    """Build the coverage of origins, and a page of the kernels by origin."""
    covered, groups = coverage(trace), origin_groups(trace)
    page = params.rows
    rows = [
        _row(trace, *values)
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


def _row(trace: Trace, first: int, longest: int, count: int, ns: int) -> OriginRow:
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


def _details(covered: Coverage) -> Text:
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
