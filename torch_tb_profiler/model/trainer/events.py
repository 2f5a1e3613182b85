"""Batches and phases of Composer's training loop.

event/dataloader  |----|              |----|
event/batch             |-----------|       |-----------|
step              |- 4 -------------|- 5 ---------------|
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from torch_tb_profiler.base.markers import TRAINER_BATCH, TRAINER_PHASES, is_data_loading
from torch_tb_profiler.model.kinds import Kind, event_ends, rows_of_kind
from torch_tb_profiler.model.trace import ABSENT, Int32, Int64, Trace, derived, name_mask


class TrainerBatches(NamedTuple):
    """Columns of k batches in order of time.

    names   the trainer's own numbers, counted from 0 over all epochs
    starts  int64[k] ns, of the wait for the data of the batch, if that is recorded
    ends    int64[k] ns
    works   int64[k] ns that the batch itself takes, without that wait
    """

    names: tuple[str, ...]
    starts: Int64
    ends: Int64
    works: Int64


@derived
def trainer_batches(trace: Trace) -> TrainerBatches | None:
    """The batches that a trainer recorded whole; None if there are none."""
    rows = _named(trace, TRAINER_BATCH)
    if len(rows) == 0:
        return None
    threads, counts = np.unique(trace.events.thread[rows], return_counts=True)
    thread = threads[np.argmax(counts)]
    rows = rows[trace.events.thread[rows] == thread]
    rows = rows[np.argsort(trace.events.start[rows], kind="stable")]
    begins, finish = trace.events.start[rows], event_ends(trace)[rows]
    numbers = trace.arg_int("batch", rows).tolist()
    names = tuple(str(at if number == ABSENT else number) for at, number in enumerate(numbers))
    loads = trainer_loading(trace)
    loads = loads[trace.events.thread[loads] == thread]
    return TrainerBatches(names, _with_loading(trace, loads, begins, finish), finish, finish - begins)


def _with_loading(trace: Trace, loads: Int32, begins: Int64, finish: Int64) -> Int64:
    """int64[k]: where the wait between a batch and the one before it begins; else where the batch does."""
    loads = loads[np.argsort(trace.events.start[loads], kind="stable")]
    at = np.searchsorted(trace.events.start[loads], begins, "right") - 1
    before = np.append(np.iinfo(np.int64).min, finish[:-1])
    starts: Int64 = begins.copy()
    for i in np.flatnonzero(at >= 0).tolist():
        load = loads[at[i]]
        if trace.events.start[load] >= before[i] and event_ends(trace)[load] <= begins[i]:
            starts[i] = trace.events.start[load]
    return starts


@derived
def trainer_loading(trace: Trace) -> Int32:
    """int32[k]: rows of the trainer's waits for its data loader."""
    rows = rows_of_kind(trace, Kind.TRAINER)
    waits: Int32 = rows[name_mask(trace.strings, is_data_loading)[trace.events.name[rows]]]
    return waits


@derived
def trainer_phases(trace: Trace) -> dict[str, Int32]:
    """By phase (`model.phases.PHASES`) the rows of the trainer that mark it; it marks no optimizer."""
    rows: dict[str, list[Int32]] = {"forward": [], "backward": []}
    for name, phase in TRAINER_PHASES.items():
        rows[phase].append(_named(trace, name))
    phases = {phase: np.sort(np.concatenate(parts)) for phase, parts in rows.items()}
    return {**phases, "optimizer": np.empty(0, np.int32), "data": trainer_loading(trace)}


def loading_per_batch(trace: Trace) -> float | None:
    """How many times as long as the batches themselves the waits for their data take; None if not recorded."""
    batches = trainer_batches(trace)
    if batches is None or batches.works.sum() <= 0:
        return None
    waits = trainer_loading(trace)
    start, end = trace.events.start[waits], event_ends(trace)[waits]
    at = np.searchsorted(batches.starts, start, "right") - 1
    inside = at >= 0
    inside[inside] &= end[inside] <= batches.ends[at[inside]]
    return float((end - start)[inside].sum() / batches.works.sum()) if inside.any() else None


def _named(trace: Trace, name: str) -> Int32:
    rows = rows_of_kind(trace, Kind.TRAINER)
    named: Int32 = rows[name_mask(trace.strings, lambda text: text == name)[trace.events.name[rows]]]
    return named
