"""What an element of the logical timeline is."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from torch_tb_profiler.base.markers import is_data_loading, is_optimizer
from torch_tb_profiler.model.kinds import Kind, kinds
from torch_tb_profiler.model.trace import Int8, Int32, Trace, name_mask


class Role(IntEnum):
    """What an element of the timeline is."""

    STEP = 0
    MODULE = 1
    BACKWARD = 2
    DATALOADER = 3
    OPTIMIZER = 4
    ANNOTATION = 5
    OPERATORS = 6
    THREADS = 7
    OPERATOR = 8
    RUNTIME = 9
    DEVICE = 10
    UNLINKED = 11


GATHERED = {
    Role.BACKWARD: "Backward",
    Role.OPERATORS: "Operators",
    Role.THREADS: "Other threads",
    Role.UNLINKED: "Device work without a launch",
}
"""Parts that are not calls themselves but gather calls of a step."""


def roles(trace: Trace, rows: Int32) -> Int8:
    """int8[k]: the Role of each of these rows of host calls."""
    by_kind = np.full(len(Kind), Role.OPERATOR, np.int8)
    by_kind[Kind.ANNOTATION], by_kind[Kind.PYTHON] = Role.ANNOTATION, Role.MODULE
    by_kind[Kind.RUNTIME] = by_kind[Kind.DRIVER] = Role.RUNTIME
    role: Int8 = by_kind[kinds(trace)[rows]]
    marker = np.isin(role, (Role.ANNOTATION, Role.OPERATOR))
    for is_marked, special in ((is_data_loading, Role.DATALOADER), (is_optimizer, Role.OPTIMIZER)):
        role[marker & name_mask(trace.strings, is_marked)[trace.events.name[rows]]] = special
    return role
