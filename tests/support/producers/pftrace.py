"""Draws a recording as rocprofv3 writes it with `--output-format pftrace`: packets of Perfetto's SDK.

Names, categories and keys are written down once and referred to by number. Packets count time from a snapshot, in
steps; what a record is lies in its annotations.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from tests.support.producers.rocprof import BOOT, CPU_INDEX, GPU_INDEX, KERNELS, PID, Run

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
    """A varint, or bytes with their length."""
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


def _records(run: Run) -> Iterator[tuple[str, str, int, int, int, dict[str, int | str]]]:
    """(category, name, track, begin, end, annotations)"""
    for call in run.calls:
        said = {"tid": call.tid, "kind": 2, "operation": 1, "corr_id": call.correlation}
        yield CATEGORIES[call.domain], call.message or call.name, 1, call.start, call.end, {**said}
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


def _packets(run: Run) -> Iterator[bytes]:
    clocks = field(1, field(1, 6) + field(2, BOOT))
    clocks += field(1, field(1, 64) + field(2, BOOT // 1000) + field(3, 1) + field(4, 1000))
    yield field(8, BOOT) + field(10, _SEQUENCE) + field(6, clocks) + field(59, field(58, 64)) + field(13, 1)
    yield field(60, field(1, 1) + field(4, field(1, PID) + field(2, PID))) + field(10, _SEQUENCE)
    for stream in (0, 1):
        yield field(60, field(1, 10 + stream) + field(2, f'STREAM [" {stream} "] ')) + field(10, _SEQUENCE)
    names = _Names()
    for category, name, track, begin, end, said in _records(run):
        common = field(8, 3) + field(10, _SEQUENCE) + field(13, 2)
        event = field(9, 1) + field(11, track) + field(3, names.id(1, category)) + field(10, names.id(2, name))
        for key, value in {
            "begin_ns": BOOT + begin,
            "end_ns": BOOT + end,
            "delta_ns": end - begin,
            **said,
        }.items():
            content = field(6, value) if isinstance(value, str) else field(3, value)
            event += field(4, field(1, names.id(3, key)) + content)
        interned = field(12, names.new) if names.new else b""
        names.new = b""
        yield common + interned + field(11, event)
        yield common + field(11, field(9, 2) + field(11, track))
    yield field(10, _SEQUENCE) + field(
        60, field(1, 99) + field(2, "COPY BYTES to Agent [1] (GPU)") + field(8, b"")
    )
    yield field(8, 3) + field(10, _SEQUENCE) + field(11, field(9, 4) + field(11, 99) + field(30, 1024))


def rocprof_pftrace(run: Run, *, packed: bool = False) -> bytes:
    """`packed`: all but the first packets deflated, as the tracing service may write them."""
    written = [field(1, packet) for packet in _packets(run)]
    if not packed:
        return b"".join(written)
    return b"".join(written[:20]) + field(1, field(50, zlib.compress(b"".join(written[20:]))))
