"""The clocks that a trace records: counters of the clock of a device's compute units.

Tools name them in their way: `SM Clock [MHz]`, `clocks.sm`, `GPU 0 gfx frequency (MHz)`, `sclk`. The name must say
the unit. The device is that of the argument `device`, of the process ("GPU 0 Counters") or of the name, or the
only one. Clocks of memory and video are others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
import numpy as np

from torch_tb_profiler.model.devices import device_ids, devices
from torch_tb_profiler.model.kinds import DEVICE_KINDS, event_ends, rows_of_kind
from torch_tb_profiler.model.trace import ABSENT, Float64, Int32, Int64, Trace, derived, distinct_codes

_CLOCK = re.compile(
    r"clocks?\.(?:current\.)?(?:sm|gr|graphics|gfx)\b|"
    r"\b(?:sm|gr|gfx|graphics|compute)[ _-]?(?:clock|clk|freq(?:uency)?)|\bsclk\b",
    re.IGNORECASE,
)
_UNIT = re.compile(r"(?<![a-z])([kMG]?)Hz(?![a-z])", re.IGNORECASE)
_MHZ = {"": 1e-6, "k": 1e-3, "m": 1.0, "g": 1e3}
_DEVICE = re.compile(r"\b(?:GPU|device)[ _-]?(\d{1,4})\b", re.IGNORECASE)


class RecordedClock(msgspec.Struct, frozen=True):
    """The clock of a device while it worked.

    mhz      mean over the time from the first of its work to the last; a sample holds until the next
    samples  how many of them lie in that time, or hold when it begins
    counter  as the trace names it
    """

    mhz: float
    samples: int
    counter: str


@derived
def recorded_clocks(trace: Trace) -> dict[int, RecordedClock]:
    """Device id -> its clock, of devices with work whose clock is recorded; the first counter that tells it."""
    work = rows_of_kind(trace, *DEVICE_KINDS)
    device, clocks = device_ids(trace), {}
    for name, row, times, mhz in _counters(trace):
        id_ = _device(trace, row, name)
        mine = work[device[work] == id_]
        if id_ is None or id_ in clocks or not len(mine):
            continue
        begin, end = int(trace.events.start[mine].min()), int(event_ends(trace)[mine].max())
        mean, samples = _mean(times, mhz, begin, end)
        if samples:
            clocks[id_] = RecordedClock(mean, samples, name)
    return clocks


def _counters(trace: Trace) -> Iterator[tuple[str, int, Int64, Float64]]:
    """(name, first row, times, MHz) of each counter of such a clock: a name, a thread and an argument."""
    events = trace.events
    counts = (events.phase == ord("C")) & (events.start != ABSENT)
    if not counts.any():
        return
    for argument, column in trace.args.items():
        if column.kind not in ("int", "float"):
            continue
        mine = column.rows[counts[column.rows]]
        for code in distinct_codes(events.name[mine]):
            name = _named(trace.strings[code], argument)
            unit = _UNIT.search(name)
            if unit is None or not _CLOCK.search(name):
                continue
            named = mine[events.name[mine] == code]
            places = np.stack([events.thread[named], device_ids(trace)[named]])
            for place in np.unique(places, axis=1).T:
                sampled = named[(places == place[:, None]).all(axis=0)]
                yield name, int(sampled[0]), *_samples(trace, sampled, argument, _MHZ[unit[1].lower()])


def _named(name: str, argument: str) -> str:
    return name if argument in ("", "value", name) else f"{name} {argument}"


def _samples(trace: Trace, rows: Int32, argument: str, scale: float) -> tuple[Int64, Float64]:
    values = scale * trace.arg_float(argument, rows)
    rows, values = rows[values > 0], values[values > 0]
    order = np.argsort(trace.events.start[rows], kind="stable")
    return trace.events.start[rows][order], values[order]


def _device(trace: Trace, row: int, name: str) -> int | None:
    if (device := int(device_ids(trace)[row])) != ABSENT:
        return device
    process = str(trace.threads[trace.events.thread[row]].pid)
    match = _DEVICE.search(process) or _DEVICE.search(name)
    if match:
        return int(match[1])
    known = devices(trace)
    return known[0].id if len(known) == 1 else None


def _mean(times: Int64, values: Float64, begin: int, end: int) -> tuple[float, int]:
    """(mean over [begin, end), samples that count); what lies before the first sample is not known."""
    first = max(int(np.searchsorted(times, begin, "right")) - 1, 0)
    last = int(np.searchsorted(times, end, "left"))
    counted = values[first:last]
    if not len(counted):
        return 0.0, 0
    edges = np.append(np.maximum(times[first:last], begin), end)
    return float(np.average(counted, weights=np.diff(edges))), len(counted)
