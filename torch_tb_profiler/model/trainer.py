"""What Composer's trainer records: batches and phases of its loop, synchronized clocks, samples of the machine.

event/dataloader  |----|              |----|
event/batch             |-----------|       |-----------|
step              |- 4 -------------|- 5 ---------------|
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from torch_tb_profiler.base.markers import TRAINER_BATCH, TRAINER_PHASES, is_data_loading
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.kinds import Kind, event_ends, rows_of_kind
from torch_tb_profiler.model.trace import ABSENT, Int32, Int64, Trace, name_mask

_SYNC_TIME, _SYNC_ERROR = "clock_sync_timestamp_us", "clock_sync_error_bound"

MACHINE_MEMORY = ("memory/virtual", "memory/swap")
MEMORY_FIELDS = ("used_gb", "free_gb", "available_gb")

MAX_MEMORY_GB = 10_000.0
"""The largest plausible memory of a machine; more means that the scale is wrong."""

_DISK_UNITS = {
    "bytes": ("bytes/s", 1.0),
    "count": ("/s", 1.0),
    "time": ("ratio", 0.001),  # ms per second
}


class TrainerBatches(msgspec.Struct, frozen=True):
    """Columns of k batches in order of time.

    names   the trainer's batch numbers, counted from 0 over all epochs
    starts  int64[k] ns; of the wait for the batch's data, if that is recorded
    ends    int64[k] ns
    works   int64[k] ns that the batch takes, without that wait
    """

    names: tuple[str, ...]
    starts: Int64
    ends: Int64
    works: Int64


@derived
def trainer_batches(trace: Trace) -> TrainerBatches | None:
    """Return the batches that the trainer recorded from begin to end, or None if there are none."""
    rows = _rows_named(trace, TRAINER_BATCH)
    if len(rows) == 0:
        return None
    threads, counts = np.unique(trace.events.thread[rows], return_counts=True)
    thread = threads[np.argmax(counts)]
    rows = rows[trace.events.thread[rows] == thread]
    rows = rows[np.argsort(trace.events.start[rows], kind="stable")]
    begins, ends = trace.events.start[rows], event_ends(trace)[rows]
    numbers = trace.arg_int("batch", rows).tolist()
    names = tuple(str(i if number == ABSENT else number) for i, number in enumerate(numbers))
    loads = trainer_loading(trace)
    loads = loads[trace.events.thread[loads] == thread]
    return TrainerBatches(names, _find_starts_of_loading(trace, loads, begins, ends), ends, ends - begins)


def _find_starts_of_loading(trace: Trace, loads: Int32, begins: Int64, ends: Int64) -> Int64:
    """Return where the last wait between each batch and the one before it begins, else where the batch does."""
    loads = loads[np.argsort(trace.events.start[loads], kind="stable")]
    last_load = np.searchsorted(trace.events.start[loads], begins, "right") - 1
    previous_ends = np.append(np.iinfo(np.int64).min, ends[:-1])
    starts: Int64 = begins.copy()
    for i in np.flatnonzero(last_load >= 0).tolist():
        load = loads[last_load[i]]
        if trace.events.start[load] >= previous_ends[i] and event_ends(trace)[load] <= begins[i]:
            starts[i] = trace.events.start[load]
    return starts


@derived
def trainer_loading(trace: Trace) -> Int32:
    """Return the rows of the trainer's waits for its data loader, int32[k]."""
    rows = rows_of_kind(trace, Kind.TRAINER)
    waits: Int32 = rows[name_mask(trace.strings, is_data_loading)[trace.events.name[rows]]]
    return waits


@derived
def trainer_phases(trace: Trace) -> dict[str, Int32]:
    """Return the rows of the trainer's marks by phase (`model.phases.PHASES`); it doesn't mark the optimizer."""
    rows: dict[str, list[Int32]] = {"forward": [], "backward": []}
    for name, phase in TRAINER_PHASES.items():
        rows[phase].append(_rows_named(trace, name))
    phases = {phase: np.sort(np.concatenate(parts)) for phase, parts in rows.items()}
    return {**phases, "optimizer": np.empty(0, np.int32), "data": trainer_loading(trace)}


def loading_per_batch(trace: Trace) -> float | None:
    """Return the time of waits for data relative to that of the batches themselves, or None if not recorded."""
    batches = trainer_batches(trace)
    if batches is None or batches.works.sum() <= 0:
        return None
    waits = trainer_loading(trace)
    start, end = trace.events.start[waits], event_ends(trace)[waits]
    batch = np.searchsorted(batches.starts, start, "right") - 1
    inside = batch >= 0
    inside[inside] &= end[inside] <= batches.ends[batch[inside]]
    return float((end - start)[inside].sum() / batches.works.sum()) if inside.any() else None


def _rows_named(trace: Trace, name: str) -> Int32:
    rows = rows_of_kind(trace, Kind.TRAINER)
    named: Int32 = rows[name_mask(trace.strings, lambda text: text == name)[trace.events.name[rows]]]
    return named


class ClockSync(msgspec.Struct, frozen=True):
    """The time at which all ranks met.

    at     ns since the trace's start on its own clock; may lie before it
    error  ns
    """

    at: int
    error: int


@derived
def clock_sync(trace: Trace) -> ClockSync | None:
    """Return when all ranks met, or None if that isn't recorded, is ambiguous, or the file is merged already.

    Composer's processes wait for each other, and each records the time (`clock_sync_timestamp_us`, µs since the
    epoch) between two barriers, which lie `clock_sync_error_bound` µs apart.
    """
    time, error = _read_metadata_value(trace, _SYNC_TIME), _read_metadata_value(trace, _SYNC_ERROR)
    if trace.merged or time is None:
        return None
    return ClockSync(1000 * time - trace.trace_start_ns, 1000 * max(error or 0, 0))


def merge_offsets(ranks: Mapping[int, Trace]) -> dict[int, int]:
    """Return by how many ns Composer's merge has shifted each of its ranks, as far as they recorded their clocks.

    The merge brings all ranks to the clock of the lowest one and leaves the recorded times as they were.
    """
    times = {
        number: time
        for number in sorted(ranks)
        if (time := _read_metadata_value(ranks[number], _SYNC_TIME)) is not None
    }
    reference = next(iter(times.values()), 0)
    return {number: 1000 * (reference - time) for number, time in times.items()}


def _read_metadata_value(trace: Trace, name: str) -> int | None:
    """Return the value of a metadata event, or None if there is none or several differ."""
    rows = np.flatnonzero(trace.events.phase == ord("M")).astype(np.int32)
    names = trace.events.name[rows]
    rows = rows[name_mask(trace.strings, lambda text: text == name, names)[names]]
    values = set(trace.arg_int("value", rows).tolist()) - {int(ABSENT)}
    value = values.pop() if len(values) == 1 else None
    return value if value is not None and abs(value) < 2**53 else None


class MachineMetric(msgspec.Struct, frozen=True):
    """How to read a counter: value = `scale` x sample, or the growth of that per second if it `grows`."""

    title: str
    unit: str
    scale: float
    grows: bool = False


def machine_metric(counter: str, argument: str, largest: float, misnamed: bool) -> MachineMetric | None:
    """Return how to read a counter of the machine, or None if it is something else or its scale is unknown.

    Composer divides bytes by 2**9 and 2**3 where it means 2**30 and 2**10, so its memory is bytes / 512 under
    names with GB and its network bytes / 8 under names with KB. Disk and network count from the machine's boot.

    largest   largest sample of this counter
    misnamed  True if the machine's memory exceeds `MAX_MEMORY_GB` in this file and so is bytes / 512
    """
    parts = counter.split("/")
    match parts:
        case ["cpu"] if argument == "cpu_percent":
            return MachineMetric("CPU", "ratio", 0.01)
        case ["memory", "cuda", field] if argument == field and field.endswith("_mem") and largest < MAX_MEMORY_GB:
            return MachineMetric(f"CUDA memory: {_words(field.removesuffix('_mem'))}", "bytes", 1e9)
        case ["memory", "virtual" | "swap" as where] if argument in MEMORY_FIELDS and misnamed:
            return MachineMetric(f"{where.capitalize()} memory: {argument.removesuffix('_gb')}", "bytes", 512.0)
        case ["network", nic, "kb_sent" | "kb_recv" as field] if argument == field:
            direction = "sent" if field == "kb_sent" else "received"
            return MachineMetric(f"Network {nic}: {direction}", "bytes/s", 8.0, True)
        case ["disk", *disk, field] if disk and argument in ("field_name", field):
            action, _, quantity = field.rpartition("_")
            if action and quantity in _DISK_UNITS:
                unit, scale = _DISK_UNITS[quantity]
                noun = {"bytes": "", "count": " operations", "time": " time"}[quantity]
                return MachineMetric(f"Disk {'/'.join(disk)}: {_words(action)}{noun}", unit, scale, True)
    return None


def _words(name: str) -> str:
    return name.replace("_", " ")
