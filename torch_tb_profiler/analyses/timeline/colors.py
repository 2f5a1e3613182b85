"""What a slice is coloured by: the class of its work, its module, its process group."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from torch_tb_profiler.base.markers import is_data_loading, is_step
from torch_tb_profiler.model.communication.events import communication_calls, communication_kernels
from torch_tb_profiler.model.kinds import Kind, kinds
from torch_tb_profiler.model.trace import Int32, Trace, derived, name_mask

CLASSES = (
    "kernel",
    "memcpy",
    "memset",
    "communication",
    "runtime",
    "dataloader",
    "cpu_exec",
    "other",
    "annotation",
    "python",
    "sync",
)
"""The eight categories of the overview, then what the timeline tells apart beyond them."""

_OF_KIND = {
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
}


@derived
def classes(trace: Trace) -> npt.NDArray[np.int8]:
    """int8[n]: index into CLASSES of every event."""
    table = np.array([CLASSES.index(_OF_KIND.get(kind, "other")) for kind in Kind], np.int8)
    found: npt.NDArray[np.int8] = table[kinds(trace)]
    found[communication_kernels(trace) | communication_calls(trace)] = CLASSES.index("communication")
    found[name_mask(trace.strings, is_data_loading)[trace.events.name]] = CLASSES.index("dataloader")
    # Old profilers record steps as operators.
    found[name_mask(trace.strings, is_step)[trace.events.name]] = CLASSES.index("annotation")
    return found


@derived
def process_groups(trace: Trace) -> tuple[Int32, Sequence[str]]:
    """int32[n] codes and their texts: the process group of every collective; 0 ("none") elsewhere."""
    codes, texts = trace.arg_codes("Process Group Name")
    described, descriptions = trace.arg_codes("Process Group Description")
    if len(texts) == 0:
        return np.zeros(len(trace), np.int32), ("none",)
    pair = (codes.astype(np.int64) + 1) * (len(descriptions) + 1) + described + 1
    pair[codes < 0] = 0
    distinct, dense = np.unique(pair, return_inverse=True)
    labels = ["none"] if distinct[0] == 0 else []
    for key in distinct[len(labels) :].tolist():
        name, about = divmod(key, len(descriptions) + 1)
        said = descriptions[about - 1] if about else ""
        labels.append(f"{texts[name - 1]} ({said})" if said and said != "undefined" else texts[name - 1])
    if distinct[0] != 0:
        return (dense + 1).astype(np.int32), ("none", *labels)
    return dense.astype(np.int32), tuple(labels)
