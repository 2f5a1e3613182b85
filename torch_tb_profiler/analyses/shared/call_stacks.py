"""Where operators are called from: the distinct Python stacks of calls, and all of them merged into one tree.

The stack of a call is its recorded `Call stack`, or else the Python frames around it.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.grouping import group
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.model.calls.calltree import build_call_tree, innermost_enclosing
from torch_tb_profiler.model.kinds import Kind, rows_of_kind
from torch_tb_profiler.model.trace import NO_CODE, Int32, Int64, Trace, name_mask

_SEPARATOR = lazy_regex(r"[;\r\n]+")


class PythonPaths(msgspec.Struct, frozen=True):
    """Every distinct chain of nested Python frames.

    parent  int32[p]  the chain without its innermost frame, NO_CODE for a single frame
    name    int32[p]  code of the innermost frame's name
    around  int32[n]  the chain around each event, NO_CODE for none
    """

    parent: Int32
    name: Int32
    around: Int32


@derived
def python_paths(trace: Trace) -> PythonPaths:
    """Find the chain of frames around each event."""
    forest = build_call_tree(trace, rows_of_kind(trace, Kind.PYTHON))
    path = np.full(len(trace) + 1, NO_CODE, np.int32)
    parents: list[Int32] = []
    names: list[Int32] = []
    count, names_count = 0, len(trace.strings) - NO_CODE
    for depth in range(int(forest.depth.max(initial=-1)) + 1):
        rows = forest.rows[forest.depth[forest.rows] == depth]
        # Both codes begin at NO_CODE; a number for each pair is sorted many times as fast as pairs are.
        keys = (path[forest.parent[rows]] - np.int64(NO_CODE)) * names_count + (trace.events.name[rows] - NO_CODE)
        distinct, which = np.unique(keys, return_inverse=True)
        path[rows] = count + which
        parents.append((distinct // names_count + NO_CODE).astype(np.int32))
        names.append((distinct % names_count + NO_CODE).astype(np.int32))
        count += len(distinct)
    empty = np.empty(0, np.int32)
    return PythonPaths(
        np.concatenate([empty, *parents]),
        np.concatenate([empty, *names]),
        path[innermost_enclosing(trace, forest)],
    )


class DistinctStacks(msgspec.Struct, frozen=True):
    """Distinct stacks of some calls.

    frames  of each stack, innermost first
    which   int64[k]  the stack of each call
    bare    how many calls have no stack; they are in `which` with an empty stack
    """

    frames: list[tuple[str, ...]]
    which: Int64
    bare: int


def has_stacks(trace: Trace) -> bool:
    """Return whether the trace records where operators are called from."""
    return "Call stack" in trace.args or len(rows_of_kind(trace, Kind.PYTHON)) > 0


def distinct_stacks(trace: Trace, rows: Int32) -> DistinctStacks:
    """Find the distinct stacks of these calls."""
    recorded, texts = trace.arg_codes("Call stack")
    recorded = np.where(recorded[rows] >= 0, recorded[rows], NO_CODE)
    if len(texts):
        filled = name_mask(texts, lambda text: bool(text.strip('" ;')))
        recorded = np.where(filled[recorded], recorded, NO_CODE)
    paths = python_paths(trace)
    around = np.where(recorded >= 0, NO_CODE, paths.around[rows])
    groups = group(recorded, around)
    frames = []
    for position in groups.first.tolist():
        if recorded[position] >= 0:
            frames.append(_split(texts[int(recorded[position])]))
        else:
            frames.append(_build_chain(trace, paths, int(around[position])))
    bare = int(((recorded < 0) & (around < 0)).sum())
    return DistinctStacks(frames, groups.which, bare)


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in _SEPARATOR.split(text.strip('"')) if part.strip())


def _build_chain(trace: Trace, paths: PythonPaths, path: int) -> tuple[str, ...]:
    frames = []
    while path != NO_CODE:
        code = int(paths.name[path])
        frames.append(trace.strings[code] if code >= 0 else "")
        path = int(paths.parent[path])
    return tuple(frames)


class MergedFrame(msgspec.Struct, frozen=True):
    """A frame with all stacks that share the frames around it; `parent` is an index, NO_CODE for outermost."""

    text: str
    parent: int
    calls: int
    host_ns: int
    device_ns: int


def merge_stacks(frames: list[tuple[str, ...]], calls: Int64, host: Int64, device: Int64) -> list[MergedFrame]:
    """Merge stacks into frames, each after the one around it, with the sums of all stacks through it."""
    index: dict[tuple[int, str], int] = {}
    parents: list[int] = []
    texts: list[str] = []
    sums: list[list[int]] = []
    for stack, *amounts in zip(frames, calls.tolist(), host.tolist(), device.tolist(), strict=True):
        above = NO_CODE
        for text in reversed(stack):
            position = index.setdefault((above, text), len(texts))
            if position == len(texts):
                parents.append(above)
                texts.append(text)
                sums.append([0, 0, 0])
            for i, amount in enumerate(amounts):
                sums[position][i] += amount
            above = position
    return [
        MergedFrame(text, parent, *amounts) for text, parent, amounts in zip(texts, parents, sums, strict=True)
    ]
