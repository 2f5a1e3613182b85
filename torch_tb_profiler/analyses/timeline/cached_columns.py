"""Tiles and counters as arrays that another process maps instead of computing them.

For 5 million events this saves the first zoom 2 s of CPU time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec.structs import asdict

from torch_tb_profiler.analyses.shared.payload_values import optional_int
from torch_tb_profiler.analyses.timeline.boxes import ArrayColumns, pyramid_columns, restore_pyramid
from torch_tb_profiler.analyses.timeline.colors import event_classes
from torch_tb_profiler.analyses.timeline.counters import CounterSeries, all_series, first_counter
from torch_tb_profiler.analyses.tracks.lanes import Lanes, lanes
from torch_tb_profiler.analyses.tracks.python_gaps import frames_between_operators
from torch_tb_profiler.base.memo import seed_derived
from torch_tb_profiler.model.kernels.short_names import kernel_labels
from torch_tb_profiler.model.trace import ABSENT, Int64, Trace


def tile_columns(trace: Trace) -> ArrayColumns:
    """Return lanes and levels (`pyramid_columns`), the class of every event, and the short names of kernels.

    class       int8[n]   index into CLASSES
    label.code  int32[k]  of the names with a short one, which are the texts `label`
    frames.<field>  of the Lanes of Python frames between operators; `root` as uint8
    """
    labels, frames = kernel_labels(trace), frames_between_operators(trace)
    return {
        # Python frames are folded when a timeline opens; their lanes are computed when they are unfolded.
        **pyramid_columns(trace, lanes, False),
        **{f"frames.{name}": column for name, column in asdict(frames).items()},
        "frames.root": frames.root.view(np.uint8),
        "class": event_classes(trace),
        "label.code": np.array([*labels], np.int32),
        **pack_texts("label", [*labels.values()]),
    }


def restore_tiles(trace: Trace, columns: ArrayColumns) -> None:
    """Use these arrays for the tiles of a trace. Raise ValueError or KeyError if any is missing."""
    pyramid_part = {
        name: column for name, column in columns.items() if name.startswith(("lane.", "level.", "key"))
    }
    restore_pyramid(trace, pyramid_part, lanes, bool)
    frames: dict[str, Any] = {
        name.removeprefix("frames."): column for name, column in columns.items() if name.startswith("frames.")
    }
    parts = Lanes(**frames | {"root": frames["root"].view(np.bool_)})
    seed_derived(trace, frames_between_operators, value=parts)
    seed_derived(trace, event_classes, value=columns["class"])
    labels = zip(columns["label.code"].tolist(), unpack_texts("label", columns), strict=True)
    short: Mapping[int, str] = dict(labels)
    seed_derived(trace, kernel_labels, value=short)


def counter_columns(trace: Trace) -> ArrayColumns:
    """Return all counters, with their samples concatenated.

    first          int64[1]    track id of the first one
    group, device  int64[s]    ABSENT: None
    bounds         int64[s+1]  counter i has the samples bounds[i]..bounds[i + 1]
    time, value    int64[k], float64[k]
    role, name and unit are texts
    """
    series = all_series(trace)
    bounds = np.cumsum([0, *(len(counter.times) for counter in series)])
    return {
        "first": np.array([first_counter(trace)]),
        "group": _with_absent([counter.group for counter in series]),
        "device": _with_absent([counter.device for counter in series]),
        "bounds": bounds.astype(np.int64),
        "time": np.concatenate([np.empty(0, np.int64), *(counter.times for counter in series)]),
        "value": np.concatenate([np.empty(0), *(counter.values for counter in series)]),
        **pack_texts("role", [counter.role for counter in series]),
        **pack_texts("name", [counter.name for counter in series]),
        **pack_texts("unit", [counter.unit for counter in series]),
    }


def restore_counters(trace: Trace, columns: ArrayColumns) -> None:
    """Use these arrays for the counters of a trace. Raise KeyError if any is missing."""
    bounds = columns["bounds"]
    texts = zip(*(unpack_texts(name, columns) for name in ("role", "name", "unit")), strict=True)
    numbers = zip(columns["group"].tolist(), columns["device"].tolist(), strict=True)
    series = [
        CounterSeries(
            role,
            name,
            optional_int(group),
            optional_int(device),
            unit,
            columns["time"][samples],
            columns["value"][samples],
        )
        for (role, name, unit), (group, device), samples in zip(
            texts, numbers, map(slice, bounds[:-1], bounds[1:]), strict=True
        )
    ]
    seed_derived(trace, first_counter, value=int(columns["first"][0]))
    seed_derived(trace, all_series, value=tuple(series))


def _with_absent(values: Sequence[int | None]) -> Int64:
    return np.array([ABSENT if value is None else value for value in values], np.int64)


def pack_texts(name: str, texts: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
    """Return `<name>.text`, uint8, the texts in UTF-8 end to end, and `<name>.ends`, int64, where each ends."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    ends = np.cumsum([len(text) for text in encoded]).astype(np.int64)
    return {f"{name}.text": np.frombuffer(b"".join(encoded), np.uint8), f"{name}.ends": ends}


def unpack_texts(name: str, columns: ArrayColumns) -> list[str]:
    """Return the texts that `pack_texts` packed."""
    content, ends = columns[f"{name}.text"].tobytes(), columns[f"{name}.ends"].tolist()
    parts = (content[begin:end] for begin, end in zip([0, *ends], ends, strict=False))
    return [part.decode("utf-8", "surrogatepass") for part in parts]
