"""The one way in which a file of packets is read, whoever wrote it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import BinaryIO, Protocol

import numpy as np

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest.gc import without_gc
from torch_tb_profiler.ingest.kineto.columns import Columns
from torch_tb_profiler.ingest.perfetto import content as messages
from torch_tb_profiler.ingest.perfetto.clocks import BOOT, REAL, Clocks, readings
from torch_tb_profiler.ingest.perfetto.packets import batches
from torch_tb_profiler.ingest.perfetto.sequences import Sequences
from torch_tb_profiler.ingest.perfetto.wire import signed
from torch_tb_profiler.ingest.progress import Progress, Report, Step
from torch_tb_profiler.ingest.source import Source
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.trace import Int64, Trace

_SNAPSHOT = 6


@dataclass(frozen=True)
class Packets:
    """k packets that lie in `content`.

    time        int64[k]  ns since the boot, ABSENT where not said or of a clock that nothing relates to it
    generation  int64[k]  of what they refer to by number
    """

    content: messages.Content
    fields: messages.Columns
    time: Int64
    generation: Int64

    def parts(self, number: int) -> tuple[Int64, Int64, Int64]:
        """(packet, where it begins, length) of messages in packets that are whole, in order of the packets."""
        packet, at, size = self.fields.parts(number)
        whole = np.flatnonzero(~self.fields.damaged[packet])
        whole = whole[np.argsort(packet[whole], kind="stable")]
        return packet[whole], at[whole], size[whole]


class Reader(Protocol):
    """What a file is made into; `add` returns how many messages are damaged."""

    columns: Columns
    sequences: Sequences

    def add(self, packets: Packets) -> int: ...

    def finish(self, health: HealthLog, base_ns: int | None, step: Step) -> Trace:
        """`base_ns`: what leads from the clock of the packets, since the machine booted, to the epoch."""
        ...


def read_packets(reader: Reader, stream: BinaryIO, *, size: int, report: Report, limit: int) -> Trace:
    """Raises TraceError if the file holds no event, TooLargeError if it holds more than `limit`."""
    health = HealthLog()
    source = Source(stream, size, report, health, limit)
    base_ns: int | None = None
    clocks = Clocks()
    with without_gc():
        for content, at, length in batches(source, health):
            read = content.fields(at, length)
            generation = reader.sequences.enter(content, read, at, length)
            packets = Packets(content, read, clocks.times(content, read, at, length), generation)
            if base_ns is None:
                base_ns = _wall(packets)
            damaged = reader.add(packets) + int(np.count_nonzero(read.damaged))
            if damaged:
                health.add("skipped_event", "error", "packets that are damaged are left out", count=damaged)
            source.events = reader.columns.length
        arranging = partial(report, Progress("arranging", size, size, reader.columns.length))
        arranging()
        return reader.finish(health, base_ns, arranging)


def _wall(packets: Packets) -> int | None:
    """Epoch time less time since the boot, where a snapshot of clocks has both."""
    _, begins, sizes = packets.parts(_SNAPSHOT)
    for begin, size in zip(begins.tolist(), sizes.tolist(), strict=True):
        try:
            shown = readings(packets.content.content[begin : begin + size])
        except TraceError:
            continue  # a snapshot says nothing that is shown
        if BOOT in shown and REAL in shown:
            return signed(shown[REAL][2] % 2**64) - signed(shown[BOOT][2] % 2**64)
    return None
