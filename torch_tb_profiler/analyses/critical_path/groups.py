"""The path by the operator, the module or the line of the program that each piece of it belongs to."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.schedule.categories import CATEGORIES, group_of, path_pieces
from torch_tb_profiler.analyses.schedule.places import Place, places
from torch_tb_profiler.analyses.shared.grouping import group
from torch_tb_profiler.base.markers import MODULE_PREFIX
from torch_tb_profiler.model.kinds import Kind, rows_of_kind
from torch_tb_profiler.model.trace import Int32, Int64, Trace, derived, distinct_codes

_OF_CATEGORY = np.array([("host", "device", "latency").index(group_of(name)) for name in CATEGORIES])


class PathGroups(msgspec.Struct, frozen=True):
    """Columns of length g, most time first; all of them together tile the path.

    name   None: pieces that belong to nothing of the kind
    target  how the whole of it is spelled as what could be faster; None if it is no slice of its own: a module or
           a line that is written in the arguments of operators only
    times  int64[g, 3]  ns on the host, on the device and in latencies, of all steps that are looked at
    event  int32  row of the longest piece, NO_CODE if nothing is recorded there
    """

    name: tuple[str | None, ...]
    target: tuple[str | None, ...]
    times: Int64
    event: Int32


@derived
def path_groups(trace: Trace, by: Place, step: int | None = None) -> PathGroups:
    """Of all complete steps, or of one by its number among them. A latency belongs to what starts after it."""
    pieces = path_pieces(trace)
    kept = np.flatnonzero((pieces.step == step) | (step is None))
    row, length = pieces.row[kept], (pieces.end - pieces.begin)[kept]
    code, texts = places(trace, row, by)
    groups = group(code)
    times = np.zeros((len(groups), 3), np.int64)
    np.add.at(times, (groups.which, _OF_CATEGORY[pieces.category[kept]]), length)
    longest = np.empty(len(groups), np.int64)
    by_length = np.argsort(length, kind="stable")
    longest[groups.which[by_length]] = by_length  # the last write wins
    order = np.argsort(-times.sum(axis=1), kind="stable")
    names = tuple(texts[each] if each >= 0 else None for each in code[groups.first[order]].tolist())
    return PathGroups(
        name=names,
        target=tuple(_target(trace, by, name) for name in names),
        times=times[order],
        event=row[longest[order]],
    )


def _target(trace: Trace, by: Place, name: str | None) -> str | None:
    frame = MODULE_PREFIX + name if by == "module" and name else name
    known = name is not None and (by == "operator" or frame in _frames(trace))
    return f"{by}:{name}" if known else None


@derived
def _frames(trace: Trace) -> frozenset[str]:
    """Names of the recorded Python frames."""
    codes = distinct_codes(trace.events.name[rows_of_kind(trace, Kind.PYTHON)])
    return frozenset(trace.strings[code] for code in codes if code >= 0)
