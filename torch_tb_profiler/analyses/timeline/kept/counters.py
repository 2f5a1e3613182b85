"""Counters with all their samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from torch_tb_profiler.analyses.timeline.counters import Series, all_series, first_counter
from torch_tb_profiler.analyses.timeline.kept.texts import packed, unpacked
from torch_tb_profiler.analyses.timeline.pyramid import Columns
from torch_tb_profiler.base.memo import seed_derived
from torch_tb_profiler.model.trace import ABSENT, Int64, Trace


def counter_columns(trace: Trace) -> Columns:
    """All counters, their samples one after the other.

    first          int64[1]    track id of the first one
    group, device  int64[s]    ABSENT: None
    bounds         int64[s+1]  counter i has the samples bounds[i]..bounds[i + 1]
    time, value    int64[k], float64[k]
    role, name and unit are texts
    """
    series = all_series(trace)
    bounds = np.cumsum([0, *(len(each.times) for each in series)])
    return {
        "first": np.array([first_counter(trace)]),
        "group": _numbers([each.group for each in series]),
        "device": _numbers([each.device for each in series]),
        "bounds": bounds.astype(np.int64),
        "time": np.concatenate([np.empty(0, np.int64), *(each.times for each in series)]),
        "value": np.concatenate([np.empty(0), *(each.values for each in series)]),
        **packed("role", [each.role for each in series]),
        **packed("name", [each.name for each in series]),
        **packed("unit", [each.unit for each in series]),
    }


def restore_counters(trace: Trace, columns: Columns) -> None:
    """Counters of a trace are those of these columns; KeyError if any is missing."""
    bounds = columns["bounds"]
    texts = zip(*(unpacked(each, columns) for each in ("role", "name", "unit")), strict=True)
    numbers = zip(columns["group"].tolist(), columns["device"].tolist(), strict=True)
    series = [
        Series(role, name, _number(group), _number(device), unit, columns["time"][own], columns["value"][own])
        for (role, name, unit), (group, device), own in zip(
            texts, numbers, map(slice, bounds[:-1], bounds[1:]), strict=True
        )
    ]
    seed_derived(trace, first_counter, value=int(columns["first"][0]))
    seed_derived(trace, all_series, value=tuple(series))


def _numbers(values: Sequence[int | None]) -> Int64:
    return np.array([ABSENT if value is None else value for value in values], np.int64)


def _number(value: int) -> int | None:
    return None if value == ABSENT else value
