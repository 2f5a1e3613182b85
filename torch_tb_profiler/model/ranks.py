"""The rank of a trace, and the parts of a file that holds several ranks or recordings."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec.structs import replace

from torch_tb_profiler.base.memo import Memo, derived
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.model.kinds import DEVICE_KINDS, HOST_KINDS, Kind, rows_of_kind
from torch_tb_profiler.model.trace import ABSENT, ArgColumn, Bool, Events, Int32, Trace, distinct_codes, name_mask

RANK_METADATA_KEY = "metadataOfRanks"
"""Key of `Trace.metadata` for the metadata of each rank of a merged trace, by rank as text."""

FALLBACK_RANK_KEY = "rankOfTrace"
"""Key of `Trace.metadata` for the rank by the file's name, its neighbors, or its place in a merged file."""


def with_fallback_rank(trace: Trace, number: int) -> Trace:
    """Return a copy of `trace` whose rank is `number` unless its metadata names one."""
    return replace(trace, metadata={**trace.metadata, FALLBACK_RANK_KEY: number}, _memo=Memo())


@derived
def trace_rank(trace: Trace) -> int | None:
    """Return the file's own rank (`distributedInfo.rank`, Composer's `global_rank`), else the fallback rank."""
    info = trace.metadata.get("distributedInfo")
    value = info.get("rank") if isinstance(info, Mapping) else trace.metadata.get("global_rank")
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    ranks = set(trace.arg_int("value", _global_rank_rows(trace)).tolist()) - {int(ABSENT)}
    value = ranks.pop() if len(ranks) == 1 else trace.metadata.get(FALLBACK_RANK_KEY)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


@derived
def split_ranks(trace: Trace) -> dict[int, Trace]:
    """Return one trace per rank of a merged file, or {} if the file holds one process.

    Composer's merge is recognized by host *and* device work under the same pid, for two or more small integer
    pids; sglang's by labels before its pids (`[TP0-EP1] 4242`).
    """
    if labeled := _split_labeled_ranks(trace):
        return labeled
    events = trace.events
    host = {
        trace.threads[code].pid
        for kind in (*HOST_KINDS, Kind.TRAINER)
        for code in distinct_codes(events.thread.take(rows_of_kind(trace, kind)))
    }
    device = {
        trace.threads[code].pid for code in distinct_codes(events.thread[rows_of_kind(trace, *DEVICE_KINDS)])
    }
    named = _global_ranks(trace)
    ranks = sorted(pid for pid in host & (device | named) if isinstance(pid, int))
    if len(ranks) < 2:
        return {}
    pids = [thread.pid for thread in trace.threads]
    merged = replace(trace, merged=True, _memo=Memo())
    return {
        pid: _with_rank_metadata(select_events(merged, np.array([p == pid for p in pids])[events.thread]), pid)
        for pid in ranks
    }


def _with_rank_metadata(part: Trace, number: int) -> Trace:
    """Return a copy of `part` with the metadata that only this rank has (`RANK_METADATA_KEY`)."""
    metadata = dict(part.metadata)
    by_rank = metadata.pop(RANK_METADATA_KEY, None)
    local = by_rank.get(str(number)) if isinstance(by_rank, Mapping) else None
    if isinstance(local, Mapping):
        metadata = {**local, **metadata}
    return with_fallback_rank(replace(part, metadata=metadata, _memo=Memo()), number)


_LABEL = lazy_regex(r"^\[((?:(?:TP|DP|PP|EP)\d{1,6}-?)+)\] ")
_LABEL_ORDER = ("DP", "EP", "PP", "TP")


def _split_labeled_ranks(trace: Trace) -> dict[int, Trace]:
    """Return one trace per label that sglang puts before each pid.

    The rank is the number behind TP if that is unique, else the label's position in sglang's order.
    `distributedInfo` is dropped, as it describes the first file only.
    """
    processes = [str(thread.pid) for thread in trace.threads]
    matches = [_LABEL.match(process) if process.startswith("[") else None for process in processes]
    labels = [None if match is None else match[1] for match in matches]
    if not any(labels):
        return {}
    host = set(distinct_codes(trace.events.thread[rows_of_kind(trace, *HOST_KINDS)]))
    places = {label: _place(label) for code, label in enumerate(labels) if label is not None and code in host}
    if len(places) < 2:
        return {}
    tensor = [place[-1] for place in places.values()]
    ordered = sorted(places, key=lambda label: places[label])
    number = {
        label: places[label][-1] if len(set(tensor)) == len(tensor) else i for i, label in enumerate(ordered)
    }
    metadata = {key: value for key, value in trace.metadata.items() if key != "distributedInfo"}
    plain = replace(trace, metadata=metadata, merged=True, _memo=Memo())
    return {
        number[label]: with_fallback_rank(
            select_events(plain, np.array([text == label for text in labels])[trace.events.thread]), number[label]
        )
        for label in sorted(number, key=lambda label: number[label])
    }


def _place(label: str) -> tuple[int, ...]:
    numbers = {part[:2]: int(part[2:]) for part in label.split("-")}
    return tuple(numbers.get(kind, 0) for kind in _LABEL_ORDER)


@derived
def split_trace(trace: Trace) -> dict[int, Trace]:
    """Return a file's traces by rank, or by number of the recording (from 0), or {} if it holds only one."""
    begins = trace.recordings
    if len(begins) < 2:
        return split_ranks(trace)
    rows = np.arange(len(trace))
    number = np.searchsorted(np.array(begins), rows, "right") - 1
    return {i: select_events(trace, number == i) for i in range(len(begins))}


def _global_rank_rows(trace: Trace) -> Int32:
    rows = np.flatnonzero(trace.events.phase == ord("M")).astype(np.int32)
    named = name_mask(trace.strings, lambda text: text == "global_rank").take(trace.events.name.take(rows))
    return rows[named]


def _global_ranks(trace: Trace) -> set[int | str | None]:
    rows = _global_rank_rows(trace)
    return {trace.threads[thread].pid for thread in trace.events.thread[rows].tolist()}


def select_events(trace: Trace, which: Bool) -> Trace:
    """Return a trace of a subset of the events; its times count from the first of them."""
    events = Events(*(getattr(trace.events, name)[which] for name in Events.__struct_fields__))
    position = np.cumsum(which) - 1
    args = {}
    for key, column in trace.args.items():
        selected = which[column.rows]
        if selected.any():
            rows = position[column.rows[selected]].astype(np.int32)
            args[key] = ArgColumn(column.kind, rows, column.values[selected], column.dictionary)
    timed = events.start != ABSENT
    counted = timed & (events.phase != ord("M"))
    origin = int(events.start[counted].min()) if counted.any() else 0
    start = np.where(timed, events.start - origin, ABSENT)
    return replace(
        trace,
        events=replace(events, start=start),
        args=args,
        trace_start_ns=trace.trace_start_ns + origin,
        recordings=(),
        _memo=Memo(),
    )
