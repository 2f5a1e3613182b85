"""What a rank did before each of its communication operations: most of what is kept of it, seldom looked at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec
import numpy as np
import numpy.typing as npt

from torch_tb_profiler.analyses.distributed.reduction.names import Names, short_names
from torch_tb_profiler.analyses.distributed.reduction.operations import windows_of
from torch_tb_profiler.analyses.distributed.reduction.windows import (
    top_frames,
    top_host,
    top_kernels,
    window_categories,
)
from torch_tb_profiler.analyses.shared.breakdown import CATEGORIES
from torch_tb_profiler.model.communication.collectives import collectives
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import NO_CODE, Trace

HOST_NAMES, FRAME_NAMES, KERNEL_NAMES = 5, 5, 5
"""How many operators, Python frames and kernels are kept of what came before an operation."""

DETAIL = np.dtype(
    [
        ("event", "<i4"), ("call", "<i4"), ("categories", "<i8", (len(CATEGORIES),)),
        ("host", "<i4", (HOST_NAMES,)), ("host_ns", "<i8", (HOST_NAMES,)),
        ("frames", "<i4", (FRAME_NAMES,)), ("frame_ns", "<i8", (FRAME_NAMES,)),
        ("kernels", "<i4", (KERNEL_NAMES,)), ("kernel_ns", "<i8", (KERNEL_NAMES,)),
    ]
)  # fmt: skip
"""One operation:

event, call  rows of the rank's trace, as in `model.communication.collectives.Collectives`
categories, host, host_ns, frames, frame_ns, kernels, kernel_ns  what the rank did in the operation's window; names
             are codes
"""


class RankDetails(msgspec.Struct, frozen=True):
    """In the order of the operations in the rank's summary.

    names       texts that the codes in `operations` stand for
    short_names  of the kernels among them: name -> short name, which no other kernel of the rank has
    operations  memory of an array of DETAIL
    """

    names: tuple[str, ...]
    short_names: Mapping[str, str]
    operations: Annotated[memoryview, DETAIL]

    def table(self) -> npt.NDArray[np.void]:
        """The operations as a structured array (read-only)."""
        return np.frombuffer(self.operations, DETAIL)


def details(trace: Trace) -> RankDetails:
    """Of every operation; those without a time have no window, and nothing in it."""
    operations = collectives(trace)
    table = np.zeros(len(operations), DETAIL)
    table["event"], table["call"] = operations.event, operations.call
    known, begins, finishes = windows_of(operations, steps(trace))
    table["categories"][known] = window_categories(trace, begins, finishes)
    names = Names()
    tops = (
        ("host", "host_ns", top_host(trace, begins, finishes, HOST_NAMES)),
        ("frames", "frame_ns", top_frames(trace, begins, finishes, FRAME_NAMES)),
        ("kernels", "kernel_ns", top_kernels(trace, begins, finishes, KERNEL_NAMES)),
    )
    for name, times, top in tops:
        table[name] = NO_CODE
        table[name][known] = names.adopt(trace, top.codes)
        table[times][known] = top.times
    texts = tuple(names.texts)
    return RankDetails(texts, short_names(trace, texts), memoryview(table.tobytes()))
