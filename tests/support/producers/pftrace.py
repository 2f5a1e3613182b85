"""Draws a recording as rocprofv3 writes it with `--output-format pftrace`: packets of Perfetto's SDK.

Names, categories and keys are written down once and referred to by number; what a record is lies in its
annotations. Times of packets are those of a PacketClock.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from tests.support.producers.rocprof import BOOT, CPU_INDEX, GPU_INDEX, KERNELS, PID, RocprofRun

CATEGORIES = {
    "HIP_RUNTIME_API": "hip_api",
    "HSA_CORE_API": "hsa_api",
    "MARKER_CORE_RANGE_API": "marker_api",
    "RCCL_API": "rccl_api",
}
_SEQUENCE = 7


def varint(number: int) -> bytes:
    number &= 2**64 - 1
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


def field(number: int, value: int | bytes | str) -> bytes:
    """Return a varint, or bytes with their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    content = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(content)) + content


class _Names:
    """Interns names; `new` is what a packet has to write down."""

    def __init__(self) -> None:
        self._ids: dict[tuple[int, str], int] = {}
        self.new = b""

    def id(self, kind: int, name: str) -> int:
        if (kind, name) not in self._ids:
            self._ids[kind, name] = len(self._ids) + 1
            self.new += field(kind, field(1, self._ids[kind, name]) + field(2, name))
        return self._ids[kind, name]


def _records(run: RocprofRun) -> Iterator[tuple[str, str, int, int, int, dict[str, int | str]]]:
    """Yield (category, name, track, begin, end, annotations)"""
    for call in run.calls:
        args = {"tid": call.tid, "kind": 2, "operation": 1, "corr_id": call.correlation}
        yield CATEGORIES[call.domain], call.message or call.name, 1, call.start, call.end, {**args}
    for copy in run.copies:
        source, target = (CPU_INDEX, GPU_INDEX) if copy.to_device else (GPU_INDEX, CPU_INDEX)
        yield "memory_copy", copy.operation, 10 + copy.stream, copy.start, copy.end, {
            "src_agent": f"Agent-{source}", "dst_agent": f"Agent-{target}", "copy_bytes": copy.size,
            "corr_id": copy.correlation, "tid": PID, "stream_ID": copy.stream,
        }  # fmt: skip
    for each in run.dispatches:
        items, threads = (x * y * z for x, y, z in (each.grid, each.block))
        yield "kernel_dispatch", f"{KERNELS[each.kernel]} [clone .kd]", 10 + each.stream, each.start, each.end, {
            "agent": f"Agent-{GPU_INDEX}", "agent_type": "GPU", "corr_id": each.correlation,
            "queue": each.queue - 1, "tid": PID, "kernel_id": each.kernel + 1,
            "Scratch_Size": 0, "LDS_Block_Size": 4096,
            "workgroup_size": threads, "grid_size": items, "stream_ID": each.stream,
        }  # fmt: skip


class PacketClock:
    """Times of one writer's packets, ns since BOOT.

    "steps"     from one packet to the next in `unit` ns; where time goes back, as the clock that counts beside it
    "absolute"  each packet says that it counts since the boot
    """

    def __init__(self, kind: str = "steps", unit: int = 1) -> None:
        self.kind, self.unit = kind, unit
        self._last = BOOT // unit * unit

    def snapshot(self) -> bytes:
        clocks = field(1, field(1, 6) + field(2, BOOT))
        clocks += field(1, field(1, 64) + field(2, BOOT // self.unit) + field(3, 1) + field(4, self.unit))
        return clocks + field(1, field(1, 65) + field(2, BOOT // self.unit) + field(4, self.unit))

    def at(self, time: int) -> bytes:
        if self.kind == "absolute":
            return field(8, BOOT + time) + field(58, 6)
        if BOOT + time < self._last:
            return field(8, (BOOT + time) // self.unit) + field(58, 6 if self.unit == 1 else 65)
        steps = (BOOT + time - self._last) // self.unit
        self._last += steps * self.unit
        return field(8, steps)


def counter_tracks(run: RocprofRun) -> dict[str, list[tuple[int, int]]]:
    """Return name -> (time, value) of its samples: bytes on the way to an agent, counters of a dispatch."""
    tracks: dict[str, dict[int, int]] = {}
    for to_device, agent in ((True, f"Agent [{GPU_INDEX}] (GPU)"), (False, f"Agent [{CPU_INDEX}] (CPU)")):
        copies = [copy for copy in run.copies if copy.to_device == to_device]
        edges = {
            time
            for copy in copies
            for time in (copy.start - 1000, copy.start, (copy.start + copy.end) // 2, copy.end, copy.end + 1000)
        }
        if copies:
            edges |= {min(each.start for each in run.copies) - 5000, max(each.end for each in run.copies) + 5000}
            tracks[f"COPY BYTES to {agent}"] = {
                edge: sum(copy.size for copy in copies if copy.start <= edge <= copy.end) // 1024
                for edge in sorted(edges)
            }
    for each in run.dispatches:
        for name, value in each.counters.items():
            track = tracks.setdefault(f"Agent [{GPU_INDEX}] PMC {name}", {})
            middle = (each.start + each.end) // 2
            for time, seen in ((each.start - 1000, 0), (each.start, value), (middle, value), (each.end, 0)):
                track.setdefault(time, int(seen))
    return {name: sorted(track.items()) for name, track in tracks.items()}


def _packets(run: RocprofRun, clock: PacketClock) -> Iterator[bytes]:
    yield field(8, 0) + field(10, _SEQUENCE) + field(6, clock.snapshot()) + field(59, field(58, 64)) + field(13, 1)
    yield field(60, field(1, 1) + field(4, field(1, PID) + field(2, PID))) + field(10, _SEQUENCE)
    for stream in (0, 1):
        yield field(60, field(1, 10 + stream) + field(2, f'STREAM [" {stream} "] ')) + field(10, _SEQUENCE)
    names = _Names()
    for category, name, track, begin, end, args in _records(run):
        common = field(10, _SEQUENCE) + field(13, 2)
        event = field(9, 1) + field(11, track) + field(3, names.id(1, category)) + field(10, names.id(2, name))
        for key, value in {
            "begin_ns": BOOT + begin,
            "end_ns": BOOT + end,
            "delta_ns": end - begin,
            **args,
        }.items():
            content = field(6, value) if isinstance(value, str) else field(3, value)
            event += field(4, field(1, names.id(3, key)) + content)
        interned = field(12, names.new) if names.new else b""
        names.new = b""
        yield clock.at(begin) + common + interned + field(11, event)
        yield clock.at(end) + common + field(11, field(9, 2) + field(11, track))
    for track, (name, samples) in enumerate(counter_tracks(run).items(), 99):
        copied = name.startswith("COPY")
        described = field(3, 3) + field(4, 1024) if copied else b""
        yield field(10, _SEQUENCE) + field(60, field(1, track) + field(2, name) + field(8, described))
        # The tool writes samples of --pmc again for each dispatch.
        for time, value in samples * (1 if copied else len(run.dispatches)):
            event = field(11, field(9, 4) + field(11, track) + field(30, value))
            yield clock.at(time) + field(10, _SEQUENCE) + field(13, 2) + event


def rocprof_pftrace(run: RocprofRun, *, packed: bool = False, clock: PacketClock | None = None) -> bytes:
    """Return the bytes of a file; `packed` deflates all but the first packets, as the tracing service may."""
    written = [field(1, packet) for packet in _packets(run, clock or PacketClock())]
    if not packed:
        return b"".join(written)
    return b"".join(written[:20]) + field(1, field(50, zlib.compress(b"".join(written[20:]))))
