"""Who launched what: device events to their host call, host calls to their operator.

    aten::mm -------|          thread
      cudaLaunch |             thread     correlation 7
                    gemm ---|  stream     correlation 7

The call is found by `correlation` (within one process), the operator by time nesting on the call's thread.
`External id` is used only where that finds nothing, because its meaning changed twice: id of the operator,
then equal to the correlation, then id of the operator again.

Ascend's calls and tasks share no number; there flows link them.

    aten::mm    |------|                 s  async_npu        at the start of the operator
    CANN          |launch|               s  HostToDevice     at the start of the call
    stream                  |--MatMul--| f  of both          at the start of the task
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.base.arrays import search_sorted
from torch_tb_profiler.base.memo import stored
from torch_tb_profiler.model.calls.calltree import enclosing_operators
from torch_tb_profiler.model.kinds import DEVICE_KINDS, Kind, rows_of_kind
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Int32, Int64, Trace, distinct_codes
from torch_tb_profiler.model.vendors.ascend import ascend_roles

_OPERATOR_FLOW, _CALL_FLOW = "async_npu", "HostToDevice"
"""Categories of Ascend's flows."""


class DeviceLinks(msgspec.Struct, frozen=True):
    """Device events and what launched them.

    rows      int32[k]  kernels, copies, and memsets, in file order
    launch    int32[k]  row of the runtime or driver call, NO_CODE if none is recorded
    operator  int32[k]  row of the innermost operator around the launch, NO_CODE if not linked
    """

    rows: Int32
    launch: Int32
    operator: Int32


@stored
def device_launches(trace: Trace) -> tuple[Int32, Int32]:
    """Return the rows of device events and of their launches, int32[k] each; NO_CODE without a recorded launch."""
    rows = rows_of_kind(trace, *DEVICE_KINDS)
    calls = rows_of_kind(trace, Kind.RUNTIME, Kind.DRIVER)
    if (ascend_roles(trace) >= 0).any():
        return rows, _slices_starting_at(trace, _flow_sources(trace, _CALL_FLOW, rows), calls)
    return rows, _first_match(trace.arg_int("correlation", calls), calls, trace.arg_int("correlation", rows))


@stored
def device_links(trace: Trace) -> DeviceLinks:
    """Return the launch and the operator of every device event, as far as they can be found."""
    rows, launch = device_launches(trace)
    around = enclosing_operators(trace)
    operator = np.where(launch >= 0, around.take(launch), NO_CODE).astype(np.int32)
    if (ascend_roles(trace) >= 0).any():
        sources = _flow_sources(trace, _OPERATOR_FLOW, rows)
        by_flow = _slices_starting_at(trace, sources, rows_of_kind(trace, Kind.CPU_OP))
        operator = np.where(operator >= 0, operator, by_flow)
    unlinked = operator < 0
    if unlinked.any():
        operator[unlinked] = _operators_by_external_id(trace, rows[unlinked])
    return DeviceLinks(rows, launch, operator)


def external_ids(trace: Trace, rows: Int32 | None = None) -> Int64:
    """Return the `External id`, in either spelling, of all events (int64[n]) or of `rows` (int64[k])."""
    ids = trace.arg_int("External id", rows)
    if "external id" not in trace.args:
        return ids
    return np.where(ids == ABSENT, trace.arg_int("external id", rows), ids)


def _operators_by_external_id(trace: Trace, rows: Int32) -> Int32:
    """Return the operators with the external ids of device events; an id equal to the correlation is ignored."""
    wanted, correlation = external_ids(trace, rows), trace.arg_int("correlation", rows)
    wanted[(wanted == correlation) | (wanted == 0)] = ABSENT
    operators = rows_of_kind(trace, Kind.CPU_OP)
    return _first_match(external_ids(trace, operators), operators, wanted)


def _first_match(keys: Int64, rows: Int32, wanted: Int64) -> Int32:
    """Return the first row with each wanted key, int32[k]; NO_CODE if there is none or the key is ABSENT."""
    present = keys != ABSENT
    keys, rows = keys[present], rows[present]
    if len(keys) == 0:
        return np.full(len(wanted), NO_CODE, np.int32)
    order = np.argsort(keys, kind="stable")
    keys, rows = keys.take(order), rows.take(order)
    positions = np.minimum(search_sorted(keys, wanted, "left"), len(keys) - 1)
    return np.where((keys.take(positions) == wanted) & (wanted != ABSENT), rows.take(positions), NO_CODE).astype(
        np.int32
    )


def _flow_sources(trace: Trace, category: str, rows: Int32) -> Int32:
    """Return the row of the flow event ("s") that leads to the start of each slice, int32[k], or NO_CODE."""
    events = trace.events
    source = np.full(len(rows), NO_CODE, np.int32)
    codes = [code for code in distinct_codes(events.category) if trace.strings[code] == category]
    if not codes:
        return source
    flows = np.flatnonzero((events.category == codes[0]) & (events.start != ABSENT) & (events.id != ABSENT))
    begins, finishes = (flows[events.phase[flows] == ord(phase)] for phase in "sf")
    begin_of = dict(zip(events.id[begins].tolist(), begins.tolist(), strict=True))
    places = zip(events.thread[finishes].tolist(), events.start[finishes].tolist(), strict=True)
    id_at = dict(zip(places, events.id[finishes].tolist(), strict=True))
    for i, place in enumerate(zip(events.thread[rows].tolist(), events.start[rows].tolist(), strict=True)):
        if (id := id_at.get(place)) is not None:
            source[i] = begin_of.get(id, NO_CODE)
    return source


def _slices_starting_at(trace: Trace, flows: Int32, candidates: Int32) -> Int32:
    """Return the shortest of `candidates` that begins with each flow event on its thread; NO_CODE for none."""
    events = trace.events
    longest_first = candidates[np.argsort(-events.duration[candidates], kind="stable")]
    places = zip(events.thread[longest_first].tolist(), events.start[longest_first].tolist(), strict=True)
    slice_at = dict(zip(places, longest_first.tolist(), strict=True))
    wanted = zip(events.thread[flows].tolist(), events.start[flows].tolist(), strict=True)
    slices = [
        slice_at.get(place, NO_CODE) if flow >= 0 else NO_CODE
        for flow, place in zip(flows.tolist(), wanted, strict=True)
    ]
    return np.array(slices, np.int32)
