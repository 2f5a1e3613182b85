"""Read a `.pftrace` of PyTorch (`export_chrome_trace("x.pftrace")`) into a Trace.

Host slices are track events with the arguments of the JSON as annotations. GPU slices are track events or, in
newer versions, stages of GPU queues with a separate launch. The first versions write no categories; they are then
guessed from arguments and names.
"""

from __future__ import annotations

from typing import BinaryIO

import numpy as np

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.base.markers import is_data_loading, is_optimizer, is_step
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.ingest.kineto.assemble import assemble
from torch_tb_profiler.ingest.kineto.columns import EventBlock, EventColumns
from torch_tb_profiler.ingest.perfetto.counters import CounterWriter, sample_values
from torch_tb_profiler.ingest.perfetto.interned import InternedTexts
from torch_tb_profiler.ingest.perfetto.packets import (
    EVENT_ANNOTATIONS,
    EVENT_CATEGORY,
    EVENT_NAME,
    EVENT_TRACK,
    EVENT_TYPE,
    SAMPLE,
    SLICE_BEGIN,
    SLICE_END,
    TRACK_DESCRIPTOR,
    TRACK_EVENT,
    Packets,
    read_packets,
)
from torch_tb_profiler.ingest.perfetto.protobuf import (
    MessageBuffer,
    MessageFields,
    decode_text,
    parse_fields,
    read_varints,
    to_signed,
)
from torch_tb_profiler.ingest.perfetto.stages import CORRELATION, GpuStages
from torch_tb_profiler.ingest.perfetto.values import AnnotationReader, ArgumentCells, add_cells, integer_values
from torch_tb_profiler.ingest.runtime import Report, ReportStep, ignore_step
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Int32, Int64, Trace

_COUNTER, _STAGE = 52, 53
"""Fields of a packet."""

_CORRELATION = 3000
"""Field of a track event: the extension `GpuCorrelation`."""

_UNTIMED = "events without a time, or of a clock that the file doesn't relate to the others; left out"

_OPERATOR = lazy_regex(r"\w+::|autograd::|\w+Backward\d*$")
_HINT_BITS = {
    "cuda_sync_kind": 1,
    "cbid": 2,
    "Python id": 4,
    "Python module id": 4,
    "stream": 8,
    "device": 16,
    "Input Dims": 32,
    "Sequence number": 32,
}
"""Argument key -> bit; these arguments reveal the category of a slice."""


def read_pytorch_pftrace(stream: BinaryIO, *, size: int, report: Report, limit: int) -> Trace:
    """Read the trace. Raises TraceError without any event, TooLargeError beyond `limit` bytes."""
    return read_packets(_PyTorchReader(), stream, size=size, report=report, limit=limit)


class _PyTorchReader:
    """A `PacketReader` of PyTorch's traces."""

    def __init__(self) -> None:
        self.columns, self.interned = EventColumns(), InternedTexts()
        self._stages = GpuStages(self.columns, self.interned)
        self._counters = CounterWriter(self.columns, self.interned)
        self._values = AnnotationReader(self.interned)
        self._slice_ends = SliceEnds()
        self._open_slices: list[tuple[int, int]] = []
        self._threads_by_track: dict[int, tuple[int, int]] = {}
        self._track_names: dict[int, str] = {}
        self._untimed = 0

    def add(self, packets: Packets) -> int:
        damaged = 0
        for track in packets.messages(TRACK_DESCRIPTOR):
            try:
                self._add_track(track)
            except TraceError:
                damaged += 1
        damaged += self._add_events(packets)
        for number, add in ((_STAGE, self._stages.add), (_COUNTER, self._counters.add_gpu)):
            packet, at, length = packets.parts(number)
            timed = packets.time[packet] != ABSENT
            packet, at, length = packet[timed], at[timed], length[timed]
            if len(packet):
                damaged += add(packets.content, at, length, packets.time[packet], packets.generation[packet])
        return damaged

    def finish(self, health: HealthLog, base_ns: int | None, step: ReportStep) -> Trace:
        duration, unmatched = self._slice_ends.durations(self.columns.length, step)
        for first, count in self._open_slices:
            self.columns.set_durations(first, duration[first : first + count])
        if unmatched:
            message = "begin events without an end, or end events without a begin"
            health.add("unmatched_begin_end", "warning", message, count=unmatched)
        if self._untimed:
            health.add("no_time", "error", _UNTIMED, count=self._untimed)
        step()
        self._stages.join()
        step()
        return assemble(self.columns, {"schemaVersion": 1, "baseTimeNanoseconds": base_ns or 0}, health, step)

    def _add_track(self, content: bytes) -> None:
        track = dict(parse_fields(content))
        uuid, thread, name = track.get(1), track.get(4), track.get(2)
        if not isinstance(uuid, int):
            return
        uuid = to_signed(uuid)
        if isinstance(thread, bytes):
            owner = dict(parse_fields(thread))
            pid, tid = owner.get(1, 0), owner.get(2, 0)
            if isinstance(pid, int) and isinstance(tid, int):
                self._threads_by_track[uuid] = (pid, tid)
        if isinstance(name, bytes):
            self._track_names[uuid] = decode_text(name)

    def _add_events(self, packets: Packets) -> int:
        """Add begins, ends and samples of tracks; return how many are damaged."""
        packet, at, size = packets.parts(TRACK_EVENT)
        timed = packets.time[packet] != ABSENT
        self._untimed += int(np.count_nonzero(~timed))
        packet, at, size = packet[timed], at[timed], size[timed]
        content, time, generation = packets.content, packets.time[packet], packets.generation[packet]
        read = content.parse_fields(at, size)
        damaged = read.damaged
        kind, track = read.numbers(EVENT_TYPE), read.numbers(EVENT_TRACK)
        track = np.where(track == ABSENT, 0, track)
        annotations = read.parts(EVENT_ANNOTATIONS)
        is_begin = kind[annotations[0]] == SLICE_BEGIN
        cells = list(
            self._values.annotations(content, tuple(part[is_begin] for part in annotations), generation, damaged)
        )
        submitted, at, size = read.parts(_CORRELATION)
        stages = content.parse_fields(at, size)
        damaged[submitted[stages.damaged]] = True
        sound = ~damaged
        begins = np.flatnonzero(sound & (kind == SLICE_BEGIN))
        row_of = np.full(read.count, -1)
        row_of[begins] = np.arange(len(begins)) + self.columns.length
        if len(begins):
            strings, interned = self.columns.strings, self.interned
            name = interned.field_codes("event", generation, content, read, EVENT_NAME, strings)
            category = interned.field_codes("category", generation, content, read, EVENT_CATEGORY, strings)
            category = self._categories(category, name, cells)
            durations = np.full(len(begins), ABSENT, np.int64)
            none = np.full(len(begins), ABSENT, np.int64)
            phase = np.full(len(begins), ord("X"), np.uint8)
            threads = self._thread_codes(track[begins])
            block = EventBlock(phase, category[begins], name[begins], threads, time[begins], durations, none)
            self._open_slices.append((self.columns.add_block(block), len(begins)))
            for each in cells:
                add_cells(self.columns, each, row_of)
        paired = np.flatnonzero(sound & ((kind == SLICE_BEGIN) | (kind == SLICE_END)))
        self._slice_ends.add(track[paired], time[paired], row_of[paired])
        part, stage = _submitted_stages(content, stages)
        launch = submitted[part]
        own = integer_values(cells, CORRELATION, read.count)[launch]
        met = row_of[launch] >= 0
        self._stages.submit(row_of[launch][met], own[met], stage[met])
        sampled = np.flatnonzero(sound & (kind == SAMPLE))
        value = sample_values(read, sampled)
        known = ~np.isnan(value)
        self._counters.add_tracks(self._track_names, track[sampled][known], time[sampled][known], value[known])
        return int(damaged.sum())

    def _thread_codes(self, track: Int64) -> Int32:
        """Return int32[k]: the codes of the threads that tracks belong to."""
        distinct, of = np.unique(track, return_inverse=True)
        threads = [self._threads_by_track.get(uuid, (0, uuid % 2**31)) for uuid in distinct.tolist()]
        codes: Int32 = np.array([self.columns.threads[thread] for thread in threads], np.int32)[of.ravel()]
        return codes

    def _categories(self, category: Int32, name: Int32, cells: list[ArgumentCells]) -> Int32:
        """Return the categories, guessed from arguments and names where none is written."""
        if (category != NO_CODE).all():
            return category
        hints = np.zeros(len(category), np.int64)
        for each in cells:
            hints[each.events] |= _HINT_BITS.get(each.key, 0)
        keys, of = np.unique(name.astype(np.int64) * 64 + hints, return_inverse=True)
        texts = self.columns.strings.table()
        names = [texts[code] if code >= 0 else "" for code in (keys // 64).tolist()]
        strings = self.columns.strings
        codes = [
            strings[guess_category(text, bits)] for text, bits in zip(names, (keys % 64).tolist(), strict=True)
        ]
        filled: Int32 = np.where(category == NO_CODE, np.array(codes, np.int32)[of.ravel()], category)
        return filled


class SliceEnds:
    """Begins and ends of slices, collected in file order and matched at the end.

    PyTorch writes a group of slices as all their begins, then all their ends in the same order, so on each track
    the first end belongs to the first open begin. (A viewer that sorts them by time nests equal times wrongly.)
    """

    def __init__(self) -> None:
        self._lanes: dict[int, int] = {}
        self._pieces: list[tuple[Int32, Int64, Int64]] = []

    def add(self, track: Int64, time: Int64, row: Int64) -> None:
        """Add k begins and ends; `row` is negative for an end."""
        if len(track):
            # Tracks are numbered as they come: sorting the tracks of an entire file at its end takes seconds.
            distinct, of = np.unique(track, return_inverse=True)
            lanes = [self._lanes.setdefault(each, len(self._lanes)) for each in distinct.tolist()]
            self._pieces.append((np.array(lanes, np.int32)[of.ravel()], time, row))

    def durations(self, count: int, step: ReportStep = ignore_step) -> tuple[Int64, int]:
        """Return int64[count]: durations by row, ABSENT without an end; and the number of unpaired events."""
        duration = np.full(count, ABSENT, np.int64)
        if not self._pieces:
            return duration, 0
        lane, time, row = (np.concatenate(column) for column in zip(*self._pieces, strict=True))
        self._pieces.clear()
        step()
        order = np.argsort(lane, kind="stable")
        step()
        lane, time, row = lane[order].astype(np.int64), time[order], row[order]
        first = np.append(True, lane[1:] != lane[:-1])
        step()
        waiting = np.cumsum(np.where(row >= 0, 1, -1))
        waiting -= (waiting - np.where(row >= 0, 1, -1))[first][lane]  # from 0 on each track
        step()
        # An end without an open begin takes the count to a new minimum. Shifting each track far below the one
        # before keeps the minima of tracks apart.
        far = 2 * len(row) + 2
        low = np.minimum.accumulate(waiting - lane * far) + lane * far
        before = np.minimum(np.where(first, 0, np.append(0, low[:-1])), 0)
        step()
        begins = np.flatnonzero(row >= 0)
        ends = np.flatnonzero((row < 0) & (waiting >= before))
        strays = len(row) - len(begins) - len(ends)
        # The n-th end of a track belongs to its n-th begin.
        step()
        place = np.searchsorted(lane[begins], lane[ends]) + _index_in_lane(lane[ends])
        owner = begins[place]
        step()
        duration[row[owner]] = time[ends] - time[owner]
        return duration, strays + len(begins) - len(ends)


def _index_in_lane(lane: Int64) -> Int64:
    """Return int64[k]: how many earlier entries have the same lane; lanes ascend."""
    return np.arange(len(lane)) - np.searchsorted(lane, lane)


def _submitted_stages(content: MessageBuffer, read: MessageFields) -> tuple[Int64, Int64]:
    """Return (message, stage id) of `GpuCorrelation`s, which list ids one by one or packed as bytes."""
    message, id = read.all_numbers(1)
    owners, ids = [message], [id]
    for packed, begin, size in zip(*(part.tolist() for part in read.parts(1)), strict=True):
        numbers = read_varints(content.content[begin : begin + size])
        owners.append(np.full(len(numbers), packed))
        ids.append(np.array(numbers, np.uint64).view(np.int64))
    return np.concatenate(owners), np.concatenate(ids)


def guess_category(name: str, hints: int) -> str:
    """Guess the category of a slice from its name and `hints`, the bits of the arguments that it has."""
    if hints & 1:
        return "cuda_sync"
    if hints & 2:
        vendor = "hip" if name.startswith("hip") else "cuda"
        return f"{vendor}_runtime" if name.startswith(("cuda", "hip")) else f"{vendor}_driver"
    if hints & 4:
        return "python_function"
    if hints & 8 and hints & 16:
        return (
            "gpu_memcpy" if name.startswith("Memcpy") else "gpu_memset" if name.startswith("Memset") else "kernel"
        )
    if is_step(name) or is_data_loading(name) or is_optimizer(name):
        return "user_annotation"
    return "cpu_op" if hints & 32 or _OPERATOR.match(name) else "user_annotation"
