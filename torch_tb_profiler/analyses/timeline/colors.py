"""Colors of slices: by class of work, kernel family, name, module, or process group."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from torch_tb_profiler.analyses.shared.breakdown import CATEGORIES
from torch_tb_profiler.base.markers import is_data_loading, is_step
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.communication.events import is_communication_call, is_communication_kernel
from torch_tb_profiler.model.kernels.families import FAMILIES, family_codes
from torch_tb_profiler.model.kinds import Kind, event_kinds
from torch_tb_profiler.model.modules import modules
from torch_tb_profiler.model.trace import Int32, Trace, distinct_codes, name_mask

ColorBy = Literal["class", "family", "process_group", "module"]
"""The colorings that have a legend."""

SliceColor = Literal["class", "family", "name", "process_group", "module"]
"""All colorings of slices."""

_MAX_CODE = 0xFFFF
"""Largest color code: tiles hold them as uint16."""

CLASSES = (*CATEGORIES, "annotation", "python", "sync")
"""The eight categories of the overview, then those that only the timeline distinguishes."""

_CLASS_OF_KIND = {
    Kind.CPU_OP: "cpu_exec",
    Kind.ANNOTATION: "annotation",
    Kind.PYTHON: "python",
    Kind.RUNTIME: "runtime",
    Kind.DRIVER: "runtime",
    Kind.KERNEL: "kernel",
    Kind.MEMCPY: "memcpy",
    Kind.MEMSET: "memset",
    Kind.DEVICE_ANNOTATION: "annotation",
    Kind.SYNC: "sync",
    Kind.METRICS: "annotation",
    Kind.TRAINER: "annotation",
    Kind.GRAPH_HOST: "other",
    Kind.GRAPH_EVENT: "sync",
}


@derived
def event_classes(trace: Trace) -> npt.NDArray[np.int8]:
    """Return int8[n], the index into CLASSES of every event."""
    table = np.array([CLASSES.index(_CLASS_OF_KIND.get(kind, "other")) for kind in Kind], np.int8)
    codes: npt.NDArray[np.int8] = table[event_kinds(trace)]
    codes[is_communication_kernel(trace) | is_communication_call(trace)] = CLASSES.index("communication")
    codes[name_mask(trace.strings, is_data_loading)[trace.events.name]] = CLASSES.index("dataloader")
    # Old profilers record steps as operators.
    codes[name_mask(trace.strings, is_step)[trace.events.name]] = CLASSES.index("annotation")
    return codes


def class_of(trace: Trace, row: int) -> int:
    """Return the index into CLASSES of one event."""
    return int(event_classes(trace)[row])


@derived
def collective_group_codes(trace: Trace) -> tuple[Int32, Sequence[str]]:
    """Return the process group of every collective as codes, int32[n], and their texts; code 0 is "none"."""
    names, texts = trace.arg_codes("Process Group Name")
    description_codes, descriptions = trace.arg_codes("Process Group Description")
    if len(texts) == 0:
        return np.zeros(len(trace), np.int32), ("none",)
    pair = (names.astype(np.int64) + 1) * (len(descriptions) + 1) + description_codes + 1
    pair[names < 0] = 0
    distinct, codes = np.unique(np.append(0, pair), return_inverse=True)
    labels = ["none"]
    for key in distinct[1:].tolist():
        name, description_code = divmod(key, len(descriptions) + 1)
        description = descriptions[description_code - 1] if description_code else ""
        labels.append(texts[name - 1] + (f" ({description})" if description not in ("", "undefined") else ""))
    return codes[1:].astype(np.int32), tuple(labels)


@derived
def name_codes(trace: Trace) -> npt.NDArray[np.uint16]:
    """Return uint16[names + 1], the color code (1 to 65,535) of each name code.

    It is computed from the text, so that a name has the same color in every trace. The last entry, for NO_CODE,
    is 0.
    """
    codes = np.zeros(len(trace.strings) + 1, np.uint16)
    for code in distinct_codes(trace.events.name):
        codes[code] = zlib.crc32(trace.strings[code].encode("utf-8", "surrogatepass")) % _MAX_CODE + 1
    return codes


def color_codes(trace: Trace, rows: Int32, by: SliceColor) -> npt.NDArray[np.generic]:
    """Return the color code of each of these events, at most 65,535: an index into `legend`, except for names."""
    if by == "class":
        return event_classes(trace)[rows]
    if by == "name":
        return name_codes(trace)[trace.events.name[rows]]
    if by == "family":
        return np.where(rows >= 0, family_codes(trace)[rows] + 1, 0)
    if by == "process_group":
        return np.minimum(collective_group_codes(trace)[0][rows], _MAX_CODE)
    return np.minimum(modules(trace).code[rows] + 1, _MAX_CODE)


def legend(trace: Trace, by: ColorBy) -> list[str]:
    """Return the meanings of `color_codes`. Code 0 is "none", except for classes; "" is a family without work."""
    if by == "class":
        return list(CLASSES)
    if by == "family":
        present = distinct_codes(family_codes(trace).astype(np.int32))
        return ["none", *(name if code in present else "" for code, name in enumerate(FAMILIES))]
    if by == "process_group":
        return list(collective_group_codes(trace)[1])
    table = modules(trace)
    return ["none", *(" / ".join(table.path(code)) for code in range(min(len(table.names), _MAX_CODE - 1)))]
