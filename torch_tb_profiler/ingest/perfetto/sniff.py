"""Whose trace a sequence of packets is: each function takes the first bytes of a file, unpacked."""

from __future__ import annotations

_TRACE_PACKET = b"\x0a"  # field 1 of the protobuf message Trace, length-delimited
_TRACK_DESCRIPTOR = b"\xe2\x03"  # field 60 of a packet


def is_perfetto(head: bytes) -> bool:
    """The first packet ends where the next one begins, or with the file."""
    begin, end = _packet(head, 0)
    return 0 < begin < end <= len(head) and head[end : end + 1] in (b"", _TRACE_PACKET)


def is_rocprof_pftrace(head: bytes) -> bool:
    """Records of rocprofv3 carry their own times and correlation ids."""
    return is_perfetto(head) and b"begin_ns" in head and b"corr_id" in head


def is_pytorch_pftrace(head: bytes) -> bool:
    """PyTorch begins with the bare descriptor of a process, newer versions with the time before it; recording
    services write more of their state first."""
    first = _packet(head, 0)
    second = _packet(head, first[1])
    described = any(head[begin:end].startswith(_TRACK_DESCRIPTOR) for begin, end in (first, second))
    return is_perfetto(head) and described and b"begin_ns" not in head


def _packet(head: bytes, start: int) -> tuple[int, int]:
    """(begin, end) of the content of the packet that begins at `start`; (0, 0) if none does."""
    length = 0
    for at, shift in enumerate(range(0, 35, 7), start + 1):
        if at >= len(head) or not head.startswith(_TRACE_PACKET, start):
            break
        length |= (head[at] & 0x7F) << shift
        if head[at] < 0x80:
            return at + 1, at + 1 + length
    return 0, 0
