"""GPU work as stages of queues ("stream 7"), one message each.

A launch lists the ids of the stages that it submitted (`GpuCorrelation`). The first versions have no such lists;
there the id of a stage is the correlation of its launch.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.ingest.kineto.codes import Codes, distinct_rows
from torch_tb_profiler.ingest.kineto.columns import EventBlock, EventColumns
from torch_tb_profiler.ingest.perfetto.interned import InternedTexts, text_codes
from torch_tb_profiler.ingest.perfetto.protobuf import MessageBuffer, decode_text
from torch_tb_profiler.ingest.perfetto.values import (
    ArgumentCells,
    add_cells,
    integer_values,
    last_value_positions,
)
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Int32, Int64

CORRELATION = "correlation"
"""Argument key that links launches and GPU work."""

_CATEGORIES = {
    "Kernel": "kernel",
    "Memcpy": "gpu_memcpy",
    "Memset": "gpu_memset",
    "Annotation": "gpu_user_annotation",
}
"""Stage name -> category; other stages use their name."""

_STREAM = lazy_regex(r"stream (\d{1,18})")
_LANE = lazy_regex(r"\[(\d{1,18})\]")
_JSON_KEYS = {
    "device id": "device",
    "stream id": "stream",
    "context id": "context",
    "registers_per_thread": "registers per thread",
    "shared_mem_dynamic": "shared memory",
}
"""Key in these files -> key in PyTorch's JSON, where they differ."""


class GpuStages:
    """Appends GPU stages to columns and links them to their launches at the end."""

    def __init__(self, columns: EventColumns, interned: InternedTexts) -> None:
        self._columns, self._interned = columns, interned
        self._keys = Codes()
        self._stages: list[tuple[Int64, Int64, Int64]] = []
        self._launches: list[tuple[Int64, Int64, Int64]] = []

    def submit(self, row: Int64, correlation: Int64, stage: Int64) -> None:
        """Add rows of launches, their correlation (ABSENT if missing), and the stages they submitted."""
        self._launches.append((row, correlation, stage))

    def add(self, content: MessageBuffer, at: Int64, size: Int64, time: Int64, generation: Int64) -> int:
        """Append stages; return how many are damaged."""
        read = content.parse_fields(at, size)
        cells = list(self._cells(content, read.parts(6), read.parts(21), generation, read.damaged))
        sound = np.flatnonzero(~read.damaged)
        device = np.maximum(read.numbers(11), 0)
        queue = read.numbers(13)
        lane = self._lanes(generation, queue)
        category, name = self._names(content, read.parts(17), generation, *(read.numbers(n) for n in (14, 20, 19)))
        threads = self._columns.threads
        places, of = distinct_rows(device, lane)
        thread = np.array([threads[place] for place in places], np.int32)[of]
        row_of = np.full(read.count, -1)
        row_of[sound] = np.arange(len(sound)) + self._columns.length
        self._columns.add_block(
            EventBlock(
                np.full(len(sound), ord("X"), np.uint8),
                category[sound],
                name[sound],
                thread[sound],
                time[sound],
                np.maximum(read.numbers(2)[sound], 0),
                np.full(len(sound), ABSENT, np.int64),
            )
        )
        recorded = {key: integer_values(cells, key, read.count) for key in (CORRELATION, "device", "stream")}
        self._stages.append((row_of[sound], read.numbers(1)[sound], recorded[CORRELATION][sound]))
        rows = row_of[sound].astype(np.int32)
        for key, default in (("device", device), ("stream", lane)):
            self._columns.add_cells(
                key, "int", rows, np.where(recorded[key] == ABSENT, default, recorded[key])[sound]
            )
        for each in cells:
            if not (each.kind == "int" and each.key in recorded):
                add_cells(self._columns, each, row_of)
        return int(read.damaged.sum())

    def join(self) -> None:
        """Give stages and launches the correlation that links them."""
        row, id, recorded = _concatenate(self._stages)
        launch, own, stage = _concatenate(self._launches)
        correlation = np.where(recorded == ABSENT, id, recorded) if len(launch) == 0 else recorded
        if len(launch) and len(row):
            order = np.argsort(id, kind="stable")
            at = order[np.minimum(np.searchsorted(id[order], stage), len(id) - 1)]
            met = np.flatnonzero(id[at] == stage)
            launch, own, at = launch[met], own[met], at[met]
            # Where neither the launch nor its stage has one, it is made from the row, beyond all real ones.
            missing = own == ABSENT
            correlated = np.where(missing, np.where(recorded[at] == ABSENT, 2**40 + launch, recorded[at]), own)
            lone, first = np.unique(launch[missing], return_index=True)
            generated = correlated[missing][first]
            self._columns.add_cells(CORRELATION, "int", lone.astype(np.int32), generated)
            correlated[missing] = generated[np.searchsorted(lone, launch[missing])]
            correlation[at] = np.where(recorded[at] == ABSENT, correlated, recorded[at])
        known = correlation != ABSENT
        self._columns.add_cells(CORRELATION, "int", row[known].astype(np.int32), correlation[known])

    def _lanes(self, generation: Int64, queue: Int64) -> Int64:
        """Return int64[k]: the stream numbers of queues, from their names."""
        names = Codes()
        code = self._interned.codes("stage", generation, queue, names)
        matches = [_STREAM.search(name) or _LANE.match(name) for name in names.table()]
        number = np.array([int(match[1]) if match else -1 for match in matches] + [-1], np.int64)[code]
        return np.where(number >= 0, number, np.maximum(queue, 0))

    def _names(
        self, content: MessageBuffer, spelled: tuple[Int64, Int64, Int64], generation: Int64,
        stage: Int64, event: Int64, kernel: Int64,
    ) -> tuple[Int32, Int32]:  # fmt: skip
        """Return codes of categories and names; a name is the event's own, else the kernel's, else the stage's."""
        strings, stages = self._columns.strings, Codes()
        code = self._interned.codes("stage", generation, stage, stages)
        kinds = [*stages.table(), "Kernel"]
        category = np.array([strings[_CATEGORIES.get(kind, kind)] for kind in kinds], np.int32)[code]
        name = self._interned.codes("event", generation, event, strings)
        name = np.where(name != NO_CODE, name, self._interned.codes("kernel", generation, kernel, strings))
        name = np.where(name != NO_CODE, name, np.array([strings[kind] for kind in kinds], np.int32)[code])
        message, at, size = spelled
        name[message] = text_codes(strings, content.pieces(at, size))
        return category, name.astype(np.int32)

    def _cells(
        self, content: MessageBuffer, extra: tuple[Int64, Int64, Int64], launch: tuple[Int64, Int64, Int64],
        generation: Int64, damaged: Bool,
    ) -> Iterator[ArgumentCells]:  # fmt: skip
        """Yield extra data, which are texts, and the launch parameters of kernels."""
        stage, at, size = extra
        read = content.parse_fields(at, size)
        damaged[stage[read.damaged]] = True
        name, value = (_last_parts(read.parts(number), read.count) for number in (1, 2))
        known = np.flatnonzero((name[0] >= 0) & (value[0] >= 0))
        key = text_codes(self._keys, content.pieces(name[0][known], name[1][known]))
        yield from self._text_cells(key, stage[known], content.pieces(value[0][known], value[1][known]))
        stage, at, size = launch
        read = content.parse_fields(at, size)
        damaged[stage[read.damaged]] = True
        for number, side in ((1, "grid"), (2, "block")):
            of, at, size = read.parts(number)
            sizes = content.parse_fields(at, size)
            damaged[stage[of[sizes.damaged]]] = True
            triple = [np.where((along := sizes.numbers(axis)) == ABSENT, 1, along).tolist() for axis in (1, 2, 3)]
            yield ArgumentCells(
                side, "json", stage[of], [b"[%d,%d,%d]" % each for each in zip(*triple, strict=True)]
            )
        of, at, size = read.parts(3)
        argument = content.parse_fields(at, size)
        owner = stage[of]
        damaged[owner[argument.damaged]] = True
        codes = self._interned.field_codes("argument", generation[owner], content, argument, (1, 2), self._keys)
        key = codes.astype(np.int64)
        signed = argument.numbers(3)
        yield from self._integer_cells(key, owner, np.where(signed == ABSENT, argument.numbers(4), signed))

    def _text_cells(self, key: Int64, stage: Int64, raw: list[bytes]) -> Iterator[ArgumentCells]:
        """Yield text values; those that are integers become integers."""
        integers = {each: int(each) for each in set(raw) if each.isdigit() and len(each) < 19}
        number = np.array([integers.get(each, int(ABSENT)) for each in raw], np.int64)
        yield from self._integer_cells(key, stage, number)
        names = self._keys.table()
        rest = np.flatnonzero(number == ABSENT)
        rest = rest[last_value_positions(key[rest], stage[rest])]
        for code in np.unique(key[rest]).tolist():
            mine = rest[key[rest] == code]
            yield ArgumentCells(names[code], "text", stage[mine], [decode_text(raw[at]) for at in mine.tolist()])

    def _integer_cells(self, key: Int64, stage: Int64, number: Int64) -> Iterator[ArgumentCells]:
        """Yield integer values, under the keys that PyTorch's JSON has."""
        names = self._keys.table()
        known = np.flatnonzero((number != ABSENT) & (key != NO_CODE))
        known = known[last_value_positions(key[known], stage[known])]
        for code in np.unique(key[known]).tolist():
            mine = known[key[known] == code]
            yield ArgumentCells(_JSON_KEYS.get(names[code], names[code]), "int", stage[mine], number[mine])


def _last_parts(parts: tuple[Int64, Int64, Int64], count: int) -> tuple[Int64, Int64]:
    """Return (offset, length) of the last part in each message; the offset is negative where there is none."""
    message, at, size = parts
    where, length = np.full(count, -1), np.zeros(count, np.int64)
    where[message], length[message] = at, size
    return where, length


def _concatenate(pieces: list[tuple[Int64, Int64, Int64]]) -> list[Int64]:
    return [np.concatenate(column) for column in zip(*pieces, strict=True)] or [np.empty(0, np.int64)] * 3
