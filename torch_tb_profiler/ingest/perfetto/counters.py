"""Counter samples: GPU counters (power, clocks, temperature) and counter tracks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest.kineto.codes import distinct_rows
from torch_tb_profiler.ingest.kineto.columns import EventBlock, EventColumns
from torch_tb_profiler.ingest.perfetto.interned import InternedTexts
from torch_tb_profiler.ingest.perfetto.protobuf import MessageBuffer, MessageFields, decode_text, parse_fields
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Float64, Int64

_DESCRIPTION, _SAMPLES, _GPU, _DESCRIPTION_ID = 1, 2, 3, 4
"""Fields of a GpuCounterEvent."""

_UNIT_MULTIPLIER, _FROM_LAST = 4, 5
"""Fields of a CounterDescriptor."""

VALUE_KEY = "value"
"""Argument key of a sample's value."""

MAX_TRACKS = 1 << 16
"""Most counter tracks that are read; rocprofv3 writes one for each counter and agent."""


class CounterWriter:
    """Appends samples to columns, like the "C" events of a JSON trace."""

    def __init__(self, columns: EventColumns, interned: InternedTexts) -> None:
        self._columns, self._interned = columns, interned
        self._names: dict[int, str] = {}
        self._descriptions: dict[tuple[int, int], tuple[int, dict[int, str]]] = {}

    def add_gpu(self, content: MessageBuffer, at: Int64, size: Int64, time: Int64, generation: Int64) -> int:
        """Append `GpuCounterEvent`s; return how many are damaged."""
        read = content.parse_fields(at, size)
        damaged = read.damaged
        for event, begin, length in zip(*(part.tolist() for part in read.parts(_DESCRIPTION)), strict=True):
            try:
                self._names.update(_counter_names(content.content[begin : begin + length]))
            except TraceError:
                damaged[event] = True
        event, begin, length = read.parts(_SAMPLES)
        sample = content.parse_fields(begin, length)
        damaged[event[sample.damaged]] = True
        whole, decimal = sample.numbers(2), sample.numbers(3)
        value = _merge_numbers(whole, decimal)
        known = np.flatnonzero(
            ((decimal != ABSENT) | (whole != ABSENT)) & ~damaged[event] & (time[event] != ABSENT)
        )
        event = event[known]
        distinct, of = distinct_rows(
            generation[event],
            np.maximum(read.numbers(_DESCRIPTION_ID)[event], 0),
            np.maximum(sample.numbers(1)[known], 0),
            np.maximum(read.numbers(_GPU)[event], -1),
        )
        self._append([self._process_and_name(*key) for key in distinct], of, time[event], value[known])
        return int(damaged.sum())

    def add_tracks(
        self, names: dict[int, str], track: Int64, time: Int64, value: Float64, process: int | str = "counters"
    ) -> None:
        """Append samples of tracks; a counter is named after its track."""
        distinct, of = np.unique(track, return_inverse=True)
        tracks = [(process, names.get(uuid) or f"counter {uuid}") for uuid in distinct.tolist()]
        self._append(tracks, of.ravel(), time, value)

    def _append(self, tracks: Sequence[tuple[int | str, str]], of: Int64, time: Int64, value: Float64) -> None:
        """Append k samples; sample i belongs to the (process, name) pair `tracks[of[i]]`."""
        count = len(of)
        if count == 0:
            return
        names = np.array([self._columns.strings[name] for _, name in tracks], np.int32)
        threads = np.array([self._columns.threads[process, 0] for process, _ in tracks], np.int32)
        none = np.full(count, ABSENT, np.int64)
        phase, category = np.full(count, ord("C"), np.uint8), np.full(count, NO_CODE, np.int32)
        first = self._columns.add_block(
            EventBlock(phase, category, names[of], threads[of], time, none, none.copy())
        )
        finite = np.flatnonzero(np.isfinite(value))
        self._columns.add_cells(VALUE_KEY, "float", (finite + first).astype(np.int32), value[finite])

    def _process_and_name(self, generation: int, description: int, counter: int, gpu: int) -> tuple[str, str]:
        """Return the process and name of a counter."""
        names = self._names
        if description:
            known = self._descriptions.get((generation, description))
            if known is None:
                known = _parse_description(self._interned.raw("counters", generation, description))
                self._descriptions[generation, description] = known
            gpu, names = known[0] if gpu < 0 else gpu, known[1]
        return f"GPU {max(gpu, 0)}", names.get(counter) or f"counter {counter}"


class CounterTracks:
    """Counter tracks and their samples, which a writer may repeat."""

    def __init__(self) -> None:
        self._descriptions: dict[int, tuple[str, int]] = {}
        self._samples: list[tuple[Int64, Int64, Float64]] = []

    def describe(self, uuid: int, name: str, counter: bytes) -> None:
        """Add a track with its CounterDescriptor `counter`; tracks of incremental samples are left out."""
        description = dict(parse_fields(counter))
        unit = description.get(_UNIT_MULTIPLIER, 1)
        if not description.get(_FROM_LAST) and isinstance(unit, int) and len(self._descriptions) < MAX_TRACKS:
            self._descriptions[uuid] = name, unit

    def add(self, track: Int64, time: Int64, value: Float64) -> int:
        """Add samples; return how many have no time, no value, or no described track."""
        distinct, of = np.unique(track, return_inverse=True)
        known = np.array([each in self._descriptions for each in distinct.tolist()], np.bool_)[of.ravel()]
        known &= (time != ABSENT) & np.isfinite(value)
        if known.any():
            self._samples.append((track[known], time[known], value[known]))
        return int(np.count_nonzero(~known))

    def append_to(self, counters: CounterWriter, process: int | None) -> None:
        """Append each sample once, by track and time, as counters of this process."""
        if self._samples:
            track, time, value = (np.concatenate(column) for column in zip(*self._samples, strict=True))
            order = np.lexsort((time, track))
            track, time, value = track[order], time[order], value[order]
            new = np.append(True, (np.diff(track) != 0) | (np.diff(time) != 0) | (np.diff(value) != 0))
            distinct, of = np.unique(track[new], return_inverse=True)
            unit = np.array([self._descriptions[uuid][1] for uuid in distinct.tolist()], np.float64)[of.ravel()]
            names = {uuid: name for uuid, (name, _) in self._descriptions.items()}
            owner = "counters" if process is None else process
            counters.add_tracks(names, track[new], time[new], value[new] * unit, owner)
            self._samples.clear()


def sample_values(read: MessageFields, chosen: Int64) -> Float64:
    """Return float64[k]: the values of the TrackEvents `chosen`, NaN where there is none."""
    whole, decimal = read.numbers(30)[chosen], read.numbers(44)[chosen]
    present = (whole != ABSENT) | (decimal != ABSENT)
    values: Float64 = np.where(present, _merge_numbers(whole, decimal), np.nan)
    return values


def _merge_numbers(whole: Int64, decimal: Int64) -> Float64:
    """Return float64[k]: the doubles whose bits are in `decimal`, else the integers in `whole`."""
    merged: Float64 = np.where(decimal != ABSENT, decimal.view(np.float64), whole.astype(np.float64))
    return merged


def _parse_description(content: bytes | None) -> tuple[int, dict[int, str]]:
    """Return the GPU (its one number besides the id) and counter names by id of an interned description."""
    gpu, names = 0, {}
    try:
        for number, value in parse_fields(content or b""):
            if isinstance(value, bytes):
                names = _counter_names(value)
            elif number != 1:
                gpu = value
    except TraceError:
        return 0, {}
    return gpu, names


def _counter_names(description: bytes) -> dict[int, str]:
    """Return counter names by id of a GpuCounterDescriptor."""
    specs = [
        dict(parse_fields(spec))
        for number, spec in parse_fields(description)
        if number == 1 and isinstance(spec, bytes)
    ]
    return {
        id: decode_text(name)
        for spec in specs
        if isinstance(id := spec.get(1, 0), int) and isinstance(name := spec.get(2), bytes)
    }
