"""How the files of other tools begin: each function takes the first bytes of a file, unpacked."""

from __future__ import annotations

import re

from torch_tb_profiler.ingest.perfetto.sniff import is_perfetto, is_pytorch_pftrace, is_rocprof_pftrace

_XPROF = re.compile(rb'"metadata"\s*:\s*\{[^{}]*"highres-ticks"\s*:')
_VIZTRACER = re.compile(rb'"viztracer_metadata"\s*:|"cat"\s*:\s*"(?:fee|FEE)"')
_SPEEDSCOPE = re.compile(rb'"\$schema"\s*:\s*"https?://(?:www\.)?speedscope\.app/')
_SQLITE = b"SQLite format 3\0"
_METRICS = re.compile(
    rb"device,.*(?:GPU use|Temperature)|(?!.*timestamp).*\b(?:utilization\.gpu|power\.draw)\b|"
    rb"# HELP DCGM_FI_|#Entity\s+\w+",
    re.IGNORECASE,
)


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


def is_other_perfetto(head: bytes) -> bool:
    """Packets that no importer of this package reads."""
    return is_perfetto(head) and not (is_rocprof_pftrace(head) or is_pytorch_pftrace(head))


def is_gpu_metrics(head: bytes) -> bool:
    return bool(_METRICS.match(head.partition(b"\n")[0]))
