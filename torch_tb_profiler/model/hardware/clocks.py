"""Compute clocks that a trace records as counters.

Tools name them differently: `SM Clock [MHz]`, `clocks.sm`, `GPU 0 gfx frequency (MHz)`, `sclk`. The name must
contain the unit. The device is that of the argument `device`, of the process ("GPU 0 Counters"), of the name, or
the only one. Clocks of memory and video are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
import numpy as np

from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.model.devices import device_ids, devices
from torch_tb_profiler.model.kinds import DEVICE_KINDS, event_ends, rows_of_kind
from torch_tb_profiler.model.trace import ABSENT, Float64, Int32, Int64, Trace, distinct_codes

_CLOCK = lazy_regex(
    r"clocks?\.(?:current\.)?(?:sm|gr|graphics|gfx)\b|"
    r"\b(?:sm|gr|gfx|graphics|compute)[ _-]?(?:clock|clk|freq(?:uency)?)|\bsclk\b",
    re.IGNORECASE,
)
_UNIT = lazy_regex(r"(?<![a-z])([kMG]?)Hz(?![a-z])", re.IGNORECASE)
_MHZ_PER_UNIT = {"": 1e-6, "k": 1e-3, "m": 1.0, "g": 1e3}
_DEVICE = lazy_regex(r"\b(?:GPU|device)[ _-]?(\d{1,4})\b", re.IGNORECASE)


class RecordedClock(msgspec.Struct, frozen=True):
    """The compute clock of a device while it worked.

    mhz      mean from the start of its first work to the end of its last; a sample holds until the next
    samples  number of samples in that time, including the one that holds when it begins
    counter  name of the counter in the trace
    """

    mhz: float
    samples: int
    counter: str


@derived
def recorded_clocks(trace: Trace) -> dict[int, RecordedClock]:
    """Return device id -> clock of every device that worked, from the first counter that records it."""
    work = rows_of_kind(trace, *DEVICE_KINDS)
    device, clocks = device_ids(trace), {}
    for name, row, times, mhz in _find_clock_counters(trace):
        id_ = _find_counter_device(trace, row, name)
        on_device = work[device[work] == id_]
        if id_ is None or id_ in clocks or not len(on_device):
            continue
        begin, end = int(trace.events.start[on_device].min()), int(event_ends(trace)[on_device].max())
        mean, samples = _mean_between(times, mhz, begin, end)
        if samples:
            clocks[id_] = RecordedClock(mean, samples, name)
    return clocks


def _find_clock_counters(trace: Trace) -> Iterator[tuple[str, int, Int64, Float64]]:
    """Yield (name, first row, times, MHz) of each clock counter: a name, a thread and an argument."""
    events = trace.events
    is_counter = (events.phase == ord("C")) & (events.start != ABSENT)
    if not is_counter.any():
        return
    for argument, column in trace.args.items():
        if column.kind not in ("int", "float"):
            continue
        rows = column.rows[is_counter[column.rows]]
        for code in distinct_codes(events.name[rows]):
            name = _full_name(trace.strings[code], argument)
            unit = _UNIT.search(name)
            if unit is None or not _CLOCK.search(name):
                continue
            named = rows[events.name[rows] == code]
            places = np.stack([events.thread[named], device_ids(trace)[named]])
            for place in np.unique(places, axis=1).T:
                sampled = named[(places == place[:, None]).all(axis=0)]
                scale = _MHZ_PER_UNIT[unit[1].lower()]
                yield name, int(sampled[0]), *_read_positive_samples(trace, sampled, argument, scale)


def _full_name(name: str, argument: str) -> str:
    return name if argument in ("", "value", name) else f"{name} {argument}"


def _read_positive_samples(trace: Trace, rows: Int32, argument: str, scale: float) -> tuple[Int64, Float64]:
    values = scale * trace.arg_float(argument, rows)
    rows, values = rows[values > 0], values[values > 0]
    order = np.argsort(trace.events.start[rows], kind="stable")
    return trace.events.start[rows][order], values[order]


def _find_counter_device(trace: Trace, row: int, name: str) -> int | None:
    if (device := int(device_ids(trace)[row])) != ABSENT:
        return device
    process = str(trace.threads[trace.events.thread[row]].pid)
    match = _DEVICE.search(process) or _DEVICE.search(name)
    if match:
        return int(match[1])
    known = devices(trace)
    return known[0].id if len(known) == 1 else None


def _mean_between(times: Int64, values: Float64, begin: int, end: int) -> tuple[float, int]:
    """Return (mean over [begin, end), number of samples used); time before the first sample does not count."""
    first = max(int(np.searchsorted(times, begin, "right")) - 1, 0)
    last = int(np.searchsorted(times, end, "left"))
    used = values[first:last]
    if not len(used):
        return 0.0, 0
    edges = np.append(np.maximum(times[first:last], begin), end)
    return float(np.average(used, weights=np.diff(edges))), len(used)
