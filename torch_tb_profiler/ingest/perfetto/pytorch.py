"""A `.pftrace` of PyTorch (`export_chrome_trace("x.pftrace")`) to a Trace.

Host slices are track events with the arguments of the JSON as annotations; those of a GPU are track events or, in
newer versions, stages of its queues, whose launch lies apart. The first versions write no categories: what a slice
is, is then told by its arguments and its name.
"""

from __future__ import annotations

import re
from typing import BinaryIO

import numpy as np

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.base.markers import is_data_loading, is_optimizer, is_step
from torch_tb_profiler.ingest.kineto.assemble import assemble
from torch_tb_profiler.ingest.kineto.columns import Block, Columns
from torch_tb_profiler.ingest.perfetto import content as messages
from torch_tb_profiler.ingest.perfetto.counters import Counters, samples
from torch_tb_profiler.ingest.perfetto.pairs import Pairs
from torch_tb_profiler.ingest.perfetto.reading import Packets, read_packets
from torch_tb_profiler.ingest.perfetto.sequences import Sequences
from torch_tb_profiler.ingest.perfetto.stages import CORRELATION, Stages
from torch_tb_profiler.ingest.perfetto.values import Cells, Reader, add_cells, numbers_of, text_codes
from torch_tb_profiler.ingest.perfetto.wire import fields, signed, text, varints
from torch_tb_profiler.ingest.progress import Report, Step
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Int32, Int64, Trace

_EVENT, _COUNTER, _STAGE, _TRACK = 11, 52, 53, 60
_BEGIN, _END, _SAMPLE = 1, 2, 4
_CORRELATION = 3000
"""Of a track event: an extension of Perfetto's, `GpuCorrelation`."""

_UNTIMED = "events without a time, or of a clock that the file does not relate to the others, are left out"

_OPERATOR = re.compile(r"\w+::|autograd::|\w+Backward\d*$")
_TELLING = {
    "cuda_sync_kind": 1,
    "cbid": 2,
    "Python id": 4,
    "Python module id": 4,
    "stream": 8,
    "device": 16,
    "Input Dims": 32,
    "Sequence number": 32,
}
"""Arguments that tell what a slice is -> a bit each."""


def read_pytorch_pftrace(stream: BinaryIO, *, size: int, report: Report, limit: int) -> Trace:
    """Raises TraceError if the file holds no event, TooLargeError if it holds more than `limit`."""
    return read_packets(_Reader(), stream, size=size, report=report, limit=limit)


class _Reader:
    def __init__(self) -> None:
        self.columns, self.sequences = Columns(), Sequences()
        self._stages = Stages(self.columns, self.sequences)
        self._counters = Counters(self.columns, self.sequences)
        self._values = Reader(self.sequences)
        self._pairs = Pairs()
        self._open: list[tuple[int, Int64]] = []
        self._places: dict[int, tuple[int, int]] = {}
        self._tracks: dict[int, str] = {}
        self._untimed = 0

    def add(self, packets: Packets) -> int:
        damaged = 0
        for begin, size in zip(*(part.tolist() for part in packets.parts(_TRACK)[1:]), strict=True):
            try:
                self._track(packets.content.content[begin : begin + size])
            except TraceError:
                damaged += 1
        damaged += self._slices(packets)
        for number, add in ((_STAGE, self._stages.add), (_COUNTER, self._counters.add_gpu)):
            packet, at, length = packets.parts(number)
            timed = packets.time[packet] != ABSENT
            packet, at, length = packet[timed], at[timed], length[timed]
            if len(packet):
                damaged += add(packets.content, at, length, packets.time[packet], packets.generation[packet])
        return damaged

    def finish(self, health: HealthLog, base_ns: int | None, step: Step) -> Trace:
        duration, alone = self._pairs.durations(self.columns.length, step)
        for first, column in self._open:
            column[:] = duration[first : first + len(column)]
        if alone:
            message = "begin or end events without their partner"
            health.add("unmatched_begin_end", "warning", message, count=alone)
        if self._untimed:
            health.add("no_time", "error", _UNTIMED, count=self._untimed)
        step()
        self._stages.join()
        step()
        return assemble(self.columns, {"schemaVersion": 1, "baseTimeNanoseconds": base_ns or 0}, health, step)

    def _track(self, content: bytes) -> None:
        track = dict(fields(content))
        uuid, thread, name = track.get(1), track.get(4), track.get(2)
        if not isinstance(uuid, int):
            return
        uuid = signed(uuid)
        if isinstance(thread, bytes):
            owner = dict(fields(thread))
            pid, tid = owner.get(1, 0), owner.get(2, 0)
            if isinstance(pid, int) and isinstance(tid, int):
                self._places[uuid] = (pid, tid)
        if isinstance(name, bytes):
            self._tracks[uuid] = text(name)

    def _slices(self, packets: Packets) -> int:
        """Begins, ends and samples of tracks; returns how many are damaged."""
        packet, at, size = packets.parts(_EVENT)
        timed = packets.time[packet] != ABSENT
        self._untimed += int(np.count_nonzero(~timed))
        packet, at, size = packet[timed], at[timed], size[timed]
        content, time, generation = packets.content, packets.time[packet], packets.generation[packet]
        read = content.fields(at, size)
        damaged = read.damaged
        kind, track = read.numbers(9), read.numbers(11)
        track = np.where(track == ABSENT, 0, track)
        noted = read.parts(4)
        begun = kind[noted[0]] == _BEGIN
        cells = list(self._values.annotations(content, tuple(part[begun] for part in noted), generation, damaged))
        submitted, at, size = read.parts(_CORRELATION)
        stages = content.fields(at, size)
        damaged[submitted[stages.damaged]] = True
        sound = ~damaged
        begins = np.flatnonzero(sound & (kind == _BEGIN))
        row_of = np.full(read.count, -1)
        row_of[begins] = np.arange(len(begins)) + self.columns.length
        if len(begins):
            name = self._named(content, read, 10, 23, "event", generation)
            category = self._named(content, read, 3, 22, "category", generation)
            category = self._categories(category, name, cells)
            open_ = np.full(len(begins), ABSENT, np.int64)
            none = np.full(len(begins), ABSENT, np.int64)
            phase = np.full(len(begins), ord("X"), np.uint8)
            threads = self._threads(track[begins])
            block = Block(phase, category[begins], name[begins], threads, time[begins], open_, none)
            self._open.append((self.columns.add_block(block), open_))
            for each in cells:
                add_cells(self.columns, each, row_of)
        paired = np.flatnonzero(sound & ((kind == _BEGIN) | (kind == _END)))
        self._pairs.add(track[paired], time[paired], row_of[paired])
        part, stage = _submitted(content, stages)
        launch = submitted[part]
        own = numbers_of(cells, CORRELATION, read.count)[launch]
        met = row_of[launch] >= 0
        self._stages.submit(row_of[launch][met], own[met], stage[met])
        sampled = np.flatnonzero(sound & (kind == _SAMPLE))
        value = samples(read, sampled)
        known = ~np.isnan(value)
        self._counters.add_tracks(self._tracks, track[sampled][known], time[sampled][known], value[known])
        return int(damaged.sum())

    def _named(
        self, content: messages.Content, read: messages.Columns, by_number: int, spelled: int, kind: str,
        generation: Int64,
    ) -> Int32:  # fmt: skip
        """int32[k]: codes of texts that events refer to by number or spell out."""
        strings = self.columns.strings
        code = self.sequences.codes(kind, generation, read.numbers(by_number), strings)
        event, at, size = read.parts(spelled)
        code[event] = text_codes(strings, content.pieces(at, size))
        return code

    def _threads(self, track: Int64) -> Int32:
        distinct, of = np.unique(track, return_inverse=True)
        places = [self._places.get(uuid, (0, uuid % 2**31)) for uuid in distinct.tolist()]
        codes: Int32 = np.array([self.columns.threads[place] for place in places], np.int32)[of.ravel()]
        return codes

    def _categories(self, category: Int32, name: Int32, cells: list[Cells]) -> Int32:
        """Where none is written, what arguments and name tell."""
        if (category != NO_CODE).all():
            return category
        hints = np.zeros(len(category), np.int64)
        for each in cells:
            hints[each.events] |= _TELLING.get(each.key, 0)
        keys, of = np.unique(name.astype(np.int64) * 64 + hints, return_inverse=True)
        texts = self.columns.strings.table()
        names = [texts[code] if code >= 0 else "" for code in (keys // 64).tolist()]
        strings = self.columns.strings
        codes = [strings[category_of(text, bits)] for text, bits in zip(names, (keys % 64).tolist(), strict=True)]
        filled: Int32 = np.where(category == NO_CODE, np.array(codes, np.int32)[of.ravel()], category)
        return filled


def _submitted(content: messages.Content, read: messages.Columns) -> tuple[Int64, Int64]:
    """(which message, id of a stage) of `GpuCorrelation`s: one by one, or packed as bytes."""
    message, id = read.all_numbers(1)
    owners, ids = [message], [id]
    for packed, begin, size in zip(*(part.tolist() for part in read.parts(1)), strict=True):
        numbers = varints(content.content[begin : begin + size])
        owners.append(np.full(len(numbers), packed))
        ids.append(np.array(numbers, np.uint64).view(np.int64))
    return np.concatenate(owners), np.concatenate(ids)


def category_of(name: str, hints: int) -> str:
    """What a slice is whose file says no categories; `told`: bits of the arguments that it has."""
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
