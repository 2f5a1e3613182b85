"""Parameters and payload of the Origins view."""

from __future__ import annotations

import msgspec

from torch_tb_profiler.view import Page
from torch_tb_profiler.views._shared.text import Text


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
