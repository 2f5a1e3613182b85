"""Launches that a file tells by flows alone: Ascend's calls and tasks carry no number that both share.

aten::mm    |------|                 s  async_npu        at the begin of the operator
CANN          |launch|               s  HostToDevice     at the begin of the call
stream                  |--MatMul--| f  of both          at the begin of the task
"""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Int32, Trace, distinct_codes

OPERATOR, CALL = "async_npu", "HostToDevice"


def flow_sources(trace: Trace, category: str, rows: Int32) -> Int32:
    """int32[k]: for each slice the row of the flow event of this category ("s") from which a flow leads to its
    begin; NO_CODE if none does."""
    events = trace.events
    source = np.full(len(rows), NO_CODE, np.int32)
    codes = [code for code in distinct_codes(events.category) if trace.strings[code] == category]
    if not codes:
        return source
    flows = np.flatnonzero((events.category == codes[0]) & (events.start != ABSENT) & (events.id != ABSENT))
    begins, finishes = (flows[events.phase[flows] == ord(phase)] for phase in "sf")
    begin_of = dict(zip(events.id[begins].tolist(), begins.tolist(), strict=True))
    at = zip(events.thread[finishes].tolist(), events.start[finishes].tolist(), strict=True)
    id_at = dict(zip(at, events.id[finishes].tolist(), strict=True))
    places = zip(events.thread[rows].tolist(), events.start[rows].tolist(), strict=True)
    for i, place in enumerate(places):
        if (id := id_at.get(place)) is not None:
            source[i] = begin_of.get(id, NO_CODE)
    return source


def slices_starting_at(trace: Trace, flows: Int32, candidates: Int32) -> Int32:
    """int32[k]: of some slices the shortest that begins with each flow event on its thread; NO_CODE for none."""
    events = trace.events
    ordered = candidates[np.argsort(-events.duration[candidates], kind="stable")]
    at = zip(events.thread[ordered].tolist(), events.start[ordered].tolist(), strict=True)
    by_place = dict(zip(at, ordered.tolist(), strict=True))
    places = zip(events.thread[flows].tolist(), events.start[flows].tolist(), strict=True)
    slices = [
        by_place.get(place, NO_CODE) if flow >= 0 else NO_CODE
        for flow, place in zip(flows.tolist(), places, strict=True)
    ]
    return np.array(slices, np.int32)
