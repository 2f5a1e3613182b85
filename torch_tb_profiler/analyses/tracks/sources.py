"""The Python source around an event: from its recorded call stack, else from the Python frames around it."""

from __future__ import annotations

import re

import msgspec
import numpy as np

from torch_tb_profiler.analyses.tracks.flows import launch_of
from torch_tb_profiler.analyses.tracks.lanes import enclosing_python_frames
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.model.kinds import DEVICE_KINDS, event_kinds
from torch_tb_profiler.model.trace import NO_CODE, Trace

_LOCATION = lazy_regex(r"^(?P<file>.+)\((?P<line>\d+)\): (?P<function>.+)$", re.DOTALL)


class SourceFrame(msgspec.Struct, frozen=True):
    """One frame of a stack.

    file, line, function  None if the text doesn't have them
    event                 row of the Python frame, None if the frame comes from a recorded call stack
    """

    text: str
    file: str | None
    line: int | None
    function: str | None
    event: int | None


def call_stack(trace: Trace, row: int, operator: int) -> tuple[list[SourceFrame], str | None]:
    """Return (frames, innermost first; their source: "call stack", "python frames" or None).

    A device event has the stack of its launch.
    """
    for source in (row, operator):
        text = _recorded_stack(trace, source) if source != NO_CODE else ""
        if text:
            return [parse_frame(part) for part in re.split(r"[;\r\n]+", text) if part.strip()], "call stack"
    host = launch_of(trace, row) if event_kinds(trace)[row] in DEVICE_KINDS else row
    if host == NO_CODE:
        return [], None
    rows = enclosing_python_frames(trace, host)[::-1].tolist()
    frames = [parse_frame(name_of(trace, frame_row), frame_row) for frame_row in rows]
    return frames, "python frames" if frames else None


def _recorded_stack(trace: Trace, row: int) -> str:
    column = trace.args.get("Call stack")
    if column is None or column.kind != "text":
        return ""
    index = int(np.searchsorted(column.rows, row))
    if index == len(column.rows) or column.rows[index] != row:
        return ""
    return str(column.dictionary[column.values[index]])


def parse_frame(text: str, event: int | None = None) -> SourceFrame:
    """Parse a frame as profilers write it: `path(line): function`."""
    match = _LOCATION.match(text)
    if match is None:
        return SourceFrame(text, None, None, None, event)
    return SourceFrame(text, match["file"], int(match["line"]), match["function"], event)


def name_of(trace: Trace, row: int) -> str:
    """Return the name of an event, "" if it has none."""
    code = trace.events.name[row]
    return trace.strings[code] if code >= 0 else ""
