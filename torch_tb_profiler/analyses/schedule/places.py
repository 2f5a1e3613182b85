"""The place in the program that a slice belongs to: its operator, its module, or its line of user code.

train.py(12): step ----------------------|      the line of all below: the innermost frame of user code
  torch/nn/functional.py(8): linear ---|
    aten::linear --------------------|
      cudaLaunchKernel |                        the kernel that it launches belongs to train.py(12), too
AddmmBackward0 ---|                             on another thread: belongs where its forward operator does
"""

from __future__ import annotations

from collections import Counter
from typing import Literal

import numpy as np

from torch_tb_profiler.analyses.shared.call_stacks import python_paths
from torch_tb_profiler.base.markers import is_user_frame
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.model.calls.autograd import backward_tasks
from torch_tb_profiler.model.calls.calltree import build_call_tree, enclosing_operators, innermost_enclosing
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.kinds import Kind, event_kinds
from torch_tb_profiler.model.modules import Modules, modules
from torch_tb_profiler.model.origins.compiled import has_indirect_kernels
from torch_tb_profiler.model.origins.origins import LAUNCH, origin_positions, origins
from torch_tb_profiler.model.trace import NO_CODE, Int32, Int64, Trace, name_mask

PlaceKind = Literal["operator", "module", "line"]

_SEPARATOR = lazy_regex(r"[;\r\n]+")


def program_places(trace: Trace, rows: Int32, by: PlaceKind) -> tuple[Int64, tuple[str, ...]]:
    """Return (code of each row's place or NO_CODE, the places).

    Device work belongs where its launch does; what a graph replayed, where that was captured.
    """
    if by == "module":
        model = modules(trace)
        return np.where(rows >= 0, model.code[rows], NO_CODE).astype(np.int64), _module_texts(model)
    if by == "line":
        codes, texts = user_lines(trace, rows)
    else:
        operator = _operators(trace, rows)
        codes = np.where(operator >= 0, trace.events.name[operator], NO_CODE).astype(np.int64)
        texts = tuple(trace.strings)
    return _from_origins(trace, rows, by, codes, texts) if has_indirect_kernels(trace) else (codes, texts)


def _module_texts(model: Modules) -> tuple[str, ...]:
    """Return each module's name, or its path where others have the same name, as in a replay."""
    repeated = {name for name, count in Counter(model.names).items() if count > 1}
    if not repeated:
        return model.names
    paths: list[str] = []
    for name, parent in zip(model.names, model.parent.tolist(), strict=True):  # parents come first
        paths.append(name if parent < 0 else f"{paths[parent]}/{name}")
    return tuple(path if name in repeated else name for name, path in zip(model.names, paths, strict=True))


def _from_origins(
    trace: Trace, rows: Int32, by: PlaceKind, codes: Int64, texts: tuple[str, ...]
) -> tuple[Int64, tuple[str, ...]]:
    """Replace the places of events whose own origin is known from elsewhere than their launch."""
    found, position = origins(trace), origin_positions(trace)[rows]
    own = np.append(found.lines if by == "line" else found.operator, NO_CODE)[position]
    known = (own >= 0) & (np.append(found.how, NO_CODE)[position] != LAUNCH)
    places = (
        found.tables["operator"] if by == "operator" else [_as_frame(lines[0]) for lines in found.tables["lines"]]
    )
    numbers = {text: code for code, text in enumerate(texts)}
    of_place = np.array([numbers.setdefault(text, len(numbers)) for text in places] + [NO_CODE], np.int64)
    return np.where(known, of_place[own], codes), tuple(numbers)


def _as_frame(line: str) -> str:
    """Return `file:line` as frames are written, without the name of the function."""
    file, _, number = line.rpartition(":")
    return f"{file}({number})"


def user_lines(trace: Trace, rows: Int32) -> tuple[Int64, tuple[str, ...]]:
    """Return (code of the innermost frame of user code at each row, the frames).

    A backward row without such a frame around it gets that of the forward operator it differentiates.
    """
    frames, texts = _user_frames(trace)
    launch = np.full(len(trace) + 1, NO_CODE, np.int32)
    links = device_links(trace)
    launch[links.rows] = links.launch
    at = np.where((rows >= 0) & (launch[rows] >= 0), launch[rows], rows)
    code = np.where(at >= 0, frames[at], NO_CODE)
    tasks = backward_tasks(trace)
    forward = np.full(len(trace) + 1, NO_CODE, np.int32)
    forward[tasks.rows] = tasks.forward
    own = np.append(forward[:-1] >= 0, False)
    task = np.full(len(at), NO_CODE, np.int32)
    task[at >= 0] = innermost_enclosing(trace, build_call_tree(trace, tasks.rows), among=at[at >= 0])
    differentiates = np.where(own[at], forward[at], forward[task])
    return np.where((code < 0) & (differentiates >= 0), frames[differentiates], code), texts


@derived
def _user_frames(trace: Trace) -> tuple[Int64, tuple[str, ...]]:
    """Return (code of the user frame at each event, or NO_CODE: int64[n]; the frames).

    It is the event itself, the innermost frame around it, or else the innermost of the `Call stack` recorded for
    its operator.
    """
    names, paths = trace.events.name, python_paths(trace)
    user = np.append(name_mask(trace.strings, is_user_frame), False)
    # Jump from each path to its innermost ancestor that is user code, doubling the distance each time.
    is_user = user[paths.name]
    ancestor = np.append(np.where(is_user, np.arange(len(is_user)), paths.parent), NO_CODE)
    is_user = np.append(is_user, True)
    while not is_user[ancestor].all():
        ancestor = np.where(is_user[ancestor], ancestor, ancestor[ancestor])
    code = np.append(paths.name, NO_CODE)[ancestor][paths.around].astype(np.int64)
    mine = (event_kinds(trace) == Kind.PYTHON) & user[names]
    code[mine] = names[mine]
    recorded, stacks = trace.arg_codes("Call stack")
    if not len(stacks):
        return code, tuple(trace.strings)
    extra: dict[str, int] = {}
    of_stack = np.full(len(stacks) + 1, NO_CODE, np.int64)
    for number, text in enumerate(stacks):
        frame = next((each.strip() for each in _SEPARATOR.split(text.strip('"')) if is_user_frame(each)), None)
        if frame is not None:
            of_stack[number] = len(trace.strings) + extra.setdefault(frame, len(extra))
    operator = _operators(trace, np.arange(len(trace), dtype=np.int32))
    stack = np.where(operator >= 0, recorded[operator], NO_CODE)
    return np.where(code >= 0, code, of_stack[stack]), (*trace.strings, *extra)


def _operators(trace: Trace, rows: Int32) -> Int32:
    """Return each row's operator: itself, the innermost around it, or the one around a device item's launch."""
    around = enclosing_operators(trace).copy()
    links = device_links(trace)
    around[links.rows] = links.operator
    own = event_kinds(trace)[rows] == Kind.CPU_OP
    return np.where(rows >= 0, np.where(own, rows, around[rows]), NO_CODE).astype(np.int32)
