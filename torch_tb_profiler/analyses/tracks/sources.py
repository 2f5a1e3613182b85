"""The Python source around an event: from its recorded call stack, else from the Python frames around it."""

from __future__ import annotations

import re

import msgspec
import numpy as np

from torch_tb_profiler.analyses.tracks.launches import launch_of
from torch_tb_profiler.analyses.tracks.positions import python_frames
from torch_tb_profiler.model.kinds import DEVICE_KINDS, event_kinds
from torch_tb_profiler.model.trace import NO_CODE, Trace

_LOCATION = re.compile(r"^(?P<file>.+)\((?P<line>\d+)\): (?P<function>.+)$", re.DOTALL)


class Frame(msgspec.Struct, frozen=True):
    """One frame; file, line and function if its text has them, `event` if the frame is one of the trace."""

    text: str
    file: str | None
    line: int | None
    function: str | None
    event: int | None


def stack(trace: Trace, row: int, operator: int) -> tuple[list[Frame], str | None]:
    """(frames innermost first, where they come from: "call stack", "python frames" or None).

    A device event has the stack of its launch.
    """
    for source in (row, operator):
        text = _recorded(trace, source) if source != NO_CODE else ""
        if text:
            return [frame(part) for part in re.split(r"[;\r\n]+", text) if part.strip()], "call stack"
    host = launch_of(trace, row) if event_kinds(trace)[row] in DEVICE_KINDS else row
    if host == NO_CODE:
        return [], None
    rows = python_frames(trace, host)[::-1].tolist()
    frames = [frame(name_of(trace, frame_row), frame_row) for frame_row in rows]
    return frames, "python frames" if frames else None


def _recorded(trace: Trace, row: int) -> str:
    column = trace.args.get("Call stack")
    if column is None or column.kind != "text":
        return ""
    at = int(np.searchsorted(column.rows, row))
    if at == len(column.rows) or column.rows[at] != row:
        return ""
    return str(column.dictionary[column.values[at]])


def frame(text: str, event: int | None = None) -> Frame:
    """A frame as profilers spell it: `path(line): function`."""
    match = _LOCATION.match(text)
    if match is None:
        return Frame(text, None, None, None, event)
    return Frame(text, match["file"], int(match["line"]), match["function"], event)


def name_of(trace: Trace, row: int) -> str:
    """The name of an event, "" if it has none."""
    code = trace.events.name[row]
    return trace.strings[code] if code >= 0 else ""
