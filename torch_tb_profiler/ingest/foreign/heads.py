"""How the files of other tools begin: each function takes the first bytes of a file, unpacked."""

from __future__ import annotations

import re

_XPROF = re.compile(rb'"metadata"\s*:\s*\{[^{}]*"highres-ticks"\s*:')
_VIZTRACER = re.compile(rb'"viztracer_metadata"\s*:|"cat"\s*:\s*"(?:fee|FEE)"')
_SPEEDSCOPE = re.compile(rb'"\$schema"\s*:\s*"https?://(?:www\.)?speedscope\.app/')
_SQLITE = b"SQLite format 3\0"
_METRICS = re.compile(
    rb"device,.*(?:GPU use|Temperature)|(?!.*timestamp).*\b(?:utilization\.gpu|power\.draw)\b|"
    rb"# HELP DCGM_FI_|#Entity\s+\w+",
    re.IGNORECASE,
)
_TRACE_PACKET = b"\x0a"  # field 1 of the protobuf message Trace, length-delimited


def is_xprof(head: bytes) -> bool:
    return bool(_XPROF.search(head))


def is_viztracer(head: bytes) -> bool:
    return bool(_VIZTRACER.search(head))


def is_ascend(head: bytes) -> bool:
    return head.startswith(_SQLITE) and b"CANN_API" in head


def is_speedscope(head: bytes) -> bool:
    return bool(_SPEEDSCOPE.search(head))


def is_nsight(head: bytes) -> bool:
    return head.startswith(_SQLITE) and b"CUPTI_ACTIVITY_KIND_" in head


def is_perfetto(head: bytes) -> bool:
    """The first packet ends where the next one begins, or with the file."""
    length, at = 0, 1
    for shift in range(0, 35, 7):
        if at >= len(head):
            return False
        byte = head[at]
        length |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            break
    end = at + length
    return (
        head.startswith(_TRACE_PACKET)
        and length > 0
        and end <= len(head)
        and head[end : end + 1] in (b"", _TRACE_PACKET)
    )


def is_gpu_metrics(head: bytes) -> bool:
    return bool(_METRICS.match(head.partition(b"\n")[0]))
