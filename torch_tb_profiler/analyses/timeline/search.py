"""Search by name: the slices that match, the next one, and where they are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from torch_tb_profiler.analyses.tracks.events import drawable_mask
from torch_tb_profiler.analyses.tracks.lanes import lanes
from torch_tb_profiler.analyses.tracks.tracks import tracks, tracks_of
from torch_tb_profiler.base.arrays import build_text_array
from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.kernels.families import family_mask
from torch_tb_profiler.model.kernels.short_names import short_kernel_names
from torch_tb_profiler.model.kinds import Kind, event_kinds
from torch_tb_profiler.model.origins.origins import origins
from torch_tb_profiler.model.trace import Bool, Int32, Int64, Trace

if TYPE_CHECKING:
    import pyarrow as pa

FAMILY_PREFIX = "family:"
"""Prefix of a query for a kernel family."""

ORIGIN_PREFIXES = ("module:", "line:")
"""Prefixes of a query for device work by the module or the source line that it comes from."""

MAX_PLACES = 8000
"""Most places in one answer; where there are more, nearby hits are merged."""


class SearchHits(msgspec.Struct, frozen=True):
    """Slices and instants whose name matches, in order of time.

    rows      int32[k]
    track     int32[k]
    by_track  int64[tracks]
    """

    rows: Int32
    track: Int32
    by_track: Int64

    def rows_on_track(self, track: int) -> Int32:
        """Return int32[m], the rows on one track."""
        rows: Int32 = self.rows[self.track == track]
        return rows


def find_hits(trace: Trace, query: str, *, regex: bool) -> SearchHits:
    """Find slices and instants with `query` in their name, or that match it as a regular expression.

    Case doesn't matter. A kernel is found by its full and its short name; "family:matrix product" finds the device
    work of a family, "module:Block_0/Linear" and "line:model.py:31" that which comes from there. Python frames are
    found even while folded. Raise UsageError for an invalid expression or an unknown family.
    """
    if query.startswith(FAMILY_PREFIX):
        match = _family_matches(trace, query)
    elif query.startswith(ORIGIN_PREFIXES):
        match = _origin_matches(trace, query, regex)
    else:
        match = _name_matches(trace, query, regex)
    rows = np.flatnonzero(match & drawable_mask(trace)).astype(np.int32)
    rows = rows[np.argsort(trace.events.start[rows], kind="stable")]
    track = tracks_of(trace, rows)
    return SearchHits(rows, track, np.bincount(track, minlength=len(tracks(trace).tracks)))


def _family_matches(trace: Trace, query: str) -> Bool:
    return family_mask(trace, np.arange(len(trace), dtype=np.int32), query.removeprefix(FAMILY_PREFIX).strip())


def _origin_matches(trace: Trace, query: str, regex: bool) -> Bool:
    """Return which device work, or call of a compiled kernel, comes from a module or a line, bool[n]."""
    kind, _, wanted = query.partition(":")
    found = origins(trace)
    if kind == "module":
        codes, texts = found.modules, ["/".join(path) for path in found.tables["modules"]]
    else:
        codes, texts = found.lines, ["\n".join(lines) for lines in found.tables["lines"]]
    match = np.zeros(len(trace), np.bool_)
    match[found.rows] = _matching_names(build_text_array(texts, "replace"), wanted.strip(), regex)[codes]
    return match


def _name_matches(trace: Trace, query: str, regex: bool) -> Bool:
    name = trace.events.name
    match: Bool = _matching_names(_build_name_array(trace), query, regex)[name]
    match |= _matching_names(_build_short_name_array(trace), query, regex)[name] & (
        event_kinds(trace) == Kind.KERNEL
    )
    return match


def _matching_names(names: pa.Array, query: str, regex: bool) -> Bool:
    """Return a mask of the names that match, bool[strings + 1], by code; the last entry is for NO_CODE.

    Arrow matches in time linear in the text whatever the expression is (RE2), so none can hang the server.
    """
    # Imported here because a process that only reads traces doesn't need pyarrow.
    import pyarrow as pa
    import pyarrow.compute as pc

    match = pc.match_substring_regex if regex else pc.match_substring
    try:
        mask = match(names, query, ignore_case=True)
    except pa.ArrowInvalid as error:
        raise UsageError(f"the regular expression {query!r} is not valid", hint=str(error)) from error
    # `to_numpy` would import pandas where it is installed.
    bits = np.unpackbits(np.frombuffer(mask.buffers()[1], np.uint8), count=len(mask), bitorder="little")
    return np.append(bits.view(np.bool_), False)


@derived
def _build_name_array(trace: Trace) -> pa.Array:
    return build_text_array(trace.strings, "replace")


@derived
def _build_short_name_array(trace: Trace) -> pa.Array:
    """Return the short names of kernels by name code, "" for all other names."""
    short = short_kernel_names(trace)
    return build_text_array([short.get(text, "") for text in trace.strings], "replace")


def adjacent_hits(trace: Trace, hits: SearchHits, time: int, row: int) -> tuple[int | None, int | None]:
    """Return the indices of the (previous, next) hit from row `row` at `time`, or from a time (row -1)."""
    starts = trace.events.start[hits.rows]
    low, high = np.searchsorted(starts, time, "left"), np.searchsorted(starts, time, "right")
    same = np.flatnonzero(hits.rows[low:high] == row)
    if len(same):
        before, after = int(low + same[0]) - 1, int(low + same[0]) + 1
    else:
        before, after = int(low) - 1, int(low if row < 0 else high)
    return before if before >= 0 else None, after if after < len(starts) else None


class HitPlaces(msgspec.Struct, frozen=True):
    """Hits by lane and time; consecutive hits without a visible gap between them are one place.

    track, depth  int32[k]  the lane
    begin, end    int64[k]  ns since the trace's start, end >= begin
    """

    track: Int32
    depth: Int32
    begin: Int64
    end: Int64


def hit_places(trace: Trace, rows: Int32, begin: int, end: int, resolution: int, *, python: bool) -> HitPlaces:
    """Return where the hits that touch [begin, end] are drawn.

    resolution  shortest visible gap in ns; doubled until there are at most MAX_PLACES
    python      whether Python frames are drawn
    """
    layout = lanes(trace, python)
    hit = np.zeros(len(trace.events.start), np.bool_)
    hit[rows] = True
    index = np.flatnonzero(hit[layout.rows] & (layout.start <= end) & (layout.end >= begin))
    lane = np.searchsorted(layout.bounds, index, "right") - 1
    first = np.ones(len(index), np.bool_)
    while len(index):
        # Nothing overlaps in a lane, so the previous hit ends last of all before it.
        gap = layout.start[index[1:]] - layout.end[index[:-1]]
        first[1:] = (np.diff(lane) > 0) | (gap >= resolution)
        if np.count_nonzero(first) <= MAX_PLACES or resolution > end - begin:
            break
        resolution *= 2
    last = np.append(first[1:], True)[: len(index)]
    track, depth = layout.track[lane[first]], layout.depth[lane[first]]
    return HitPlaces(track, depth, layout.start[index[first]], layout.end[index[last]])
