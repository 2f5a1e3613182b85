"""How the files of other tools begin: each function takes the first bytes of a file, unpacked."""

from __future__ import annotations

import re

from torch_tb_profiler.ingest.perfetto import is_perfetto, is_pytorch_pftrace, is_rocprof_pftrace
from torch_tb_profiler.ingest.rocprof.sniff import looks_like_tables

_XPROF = re.compile(rb'"metadata"\s*:\s*\{[^{}]*"highres-ticks"\s*:')
_VIZTRACER = re.compile(rb'"viztracer_metadata"\s*:|"cat"\s*:\s*"(?:fee|FEE)"')
_SPEEDSCOPE = re.compile(rb'"\$schema"\s*:\s*"https?://(?:www\.)?speedscope\.app/')
_SQLITE = b"SQLite format 3\0"
_NVIDIA_LINE = re.compile(
    rb"(?!.*timestamp).*\b(?:utilization\.gpu|power\.draw)\b|# HELP DCGM_FI_|DCGM_FI_\w+\{|#\s*Entity\s+\w+|"
    rb"#\s*(?:Time[,\s]+)?gpu[,\s]+(?:pwr|gtemp|sm|mem|fb|mclk|pclk|pviol|sbecc|rxpci)\b",
    re.IGNORECASE,
)
_ROCPROF = re.compile(
    rb'"(?:Kind|Domain)",[^\n]*"Start_Timestamp","End_Timestamp"|"Node_Id","Logical_Node_Id",|'
    rb'"Name","Calls","TotalDurationNs",'
)
_AMD = re.compile(
    rb"device,[^\n]*(?:GPU use|Temperature)|gpu,[^\n]*(?:gfx_|socket_power|power_usage)|"
    rb'\s*\{\s*"card\d+"\s*:\s*\{|'
    rb'\s*\[\s*\{\s*"(?:timestamp"\s*:\s*\d+\s*,\s*")?gpu"\s*:\s*\d+\s*,\s*"(?:usage|power|clock|temperature)',
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


def is_nvidia_metrics(head: bytes) -> bool:
    """nvidia-smi without `timestamp`, `dmon` without a date, `dcgmi dmon`, DCGM's exporter without times."""
    from torch_tb_profiler.ingest.dcgm.exposition import looks_like_dcgm

    return bool(_NVIDIA_LINE.match(head.partition(b"\n")[0])) and not looks_like_dcgm(head)


def is_rocprof_table(head: bytes) -> bool:
    """rocprofv3 with `--output-format csv`: what is not read of it (allocations, scratch memory), agents that are
    read beside others only, statistics (these of rocprof, too)."""
    return bool(_ROCPROF.match(head)) and not looks_like_tables(head)


def is_amd_metrics(head: bytes) -> bool:
    """rocm-smi (`--csv`, `--json`), amd-smi without `--watch`, and its JSON."""
    return bool(_AMD.match(head))
