"""The origin of one event."""

from __future__ import annotations

import msgspec

from torch_tb_profiler.analyses.origins.generated import generated_source
from torch_tb_profiler.analyses.origins.groups import index_of_event, origin_values
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import TraceView


class OriginEventParams(msgspec.Struct, frozen=True):
    """`event`: row number in the trace."""

    event: int


class SourceLine(msgspec.Struct, frozen=True):
    """A line of the program."""

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


PARTS = (TraceView("origins/event", "Origin of an event", OriginEventParams, OriginEvent, build_origin),)
