"""Who launched what: device events to their host call, host calls to their operator.

    aten::mm -------|          thread
      cudaLaunch |             thread     correlation 7
                    gemm ---|  stream     correlation 7

The call is found by `correlation` (within one process), the operator by time nesting on the call's thread.
`External id` only decides where that finds nothing, because its meaning changed twice: id of the operator,
then equal to the correlation, then id of the operator again.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.calls.calltree import enclosing_operators
from torch_tb_profiler.model.calls.links import CALL, OPERATOR, flow_sources, slices_starting_at
from torch_tb_profiler.model.kinds import DEVICE_KINDS, Kind, rows_of_kind
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Int32, Int64, Trace
from torch_tb_profiler.model.vendors.ascend import ascend_roles


class DeviceLinks(msgspec.Struct, frozen=True):
    """Device events and what launched them.

    rows      int32[k]  kernels, copies and memsets, in file order
    launch    int32[k]  row of the runtime or driver call, NO_CODE if none is recorded
    operator  int32[k]  row of the innermost operator around the launch, NO_CODE if not linked
    """

    rows: Int32
    launch: Int32
    operator: Int32


@derived
def device_launches(trace: Trace) -> tuple[Int32, Int32]:
    """(int32[k] rows of device events, int32[k] rows of their launches, NO_CODE if none is recorded)."""
    rows = rows_of_kind(trace, *DEVICE_KINDS)
    correlation = trace.arg_int("correlation")
    calls = rows_of_kind(trace, Kind.RUNTIME, Kind.DRIVER)
    if (ascend_roles(trace) >= 0).any():
        return rows, slices_starting_at(trace, flow_sources(trace, CALL, rows), calls)
    return rows, _first_match(correlation[calls], calls, correlation[rows])


@derived
def device_links(trace: Trace) -> DeviceLinks:
    """Launch and operator of every device event; what cannot be linked stays unlinked."""
    rows, launch = device_launches(trace)
    around = enclosing_operators(trace)
    operator = np.where(launch >= 0, around[launch], NO_CODE).astype(np.int32)
    if (ascend_roles(trace) >= 0).any():
        by_flow = slices_starting_at(trace, flow_sources(trace, OPERATOR, rows), rows_of_kind(trace, Kind.CPU_OP))
        operator = np.where(operator >= 0, operator, by_flow)
    unlinked = operator < 0
    if unlinked.any():
        operator[unlinked] = _by_external_id(trace, rows[unlinked])
    return DeviceLinks(rows, launch, operator)


def external_ids(trace: Trace) -> Int64:
    """int64[n]: `External id` in either spelling."""
    modern = trace.arg_int("External id")
    return np.where(modern == ABSENT, trace.arg_int("external id"), modern)


def _by_external_id(trace: Trace, rows: Int32) -> Int32:
    """The operator whose external id a device event carries; an id equal to the correlation says nothing."""
    ids, correlation = external_ids(trace), trace.arg_int("correlation")
    wanted = np.where(ids[rows] == correlation[rows], ABSENT, ids[rows])
    wanted = np.where(wanted == 0, ABSENT, wanted)
    operators = rows_of_kind(trace, Kind.CPU_OP)
    return _first_match(ids[operators], operators, wanted)


def _first_match(keys: Int64, rows: Int32, wanted: Int64) -> Int32:
    """int32[k]: for each wanted key the first row that has it, NO_CODE if none (or ABSENT)."""
    known = keys != ABSENT
    keys, rows = keys[known], rows[known]
    if len(keys) == 0:
        return np.full(len(wanted), NO_CODE, np.int32)
    order = np.argsort(keys, kind="stable")
    keys, rows = keys[order], rows[order]
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where((keys[at] == wanted) & (wanted != ABSENT), rows[at], NO_CODE).astype(np.int32)
