"""Read lines of Prometheus' text format: a metric, its labels, a value, and its time in ms since the epoch.

# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).
DCGM_FI_DEV_GPU_UTIL{gpu="0",modelName="NVIDIA H100",Hostname="node7"} 45 1772939616250
"""

from __future__ import annotations

import math
import re

from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.ingest.gpu_metrics.sample import GpuSample, SamplingTool, gpu_label

DCGM = SamplingTool("DCGM", "epoch", "let Prometheus add the times: save its `/federate?match[]=...`")

_PREFIX = b"DCGM_FI_"
_LINE = lazy_regex(r"^(DCGM_FI_\w+)\{(.*)\}\s+(\S+)\s+(\d{12,14})\s*$")
_LINE_IN_HEAD = lazy_regex(rb"^DCGM_FI_\w+\{[^\n]*\}[ \t]+\S+[ \t]+\d{12,14}\s*$", re.MULTILINE)
_LABEL = lazy_regex(r'(\w+)="((?:[^"\\]|\\.)*)"')


def looks_like_dcgm(head: bytes) -> bool:
    """Return whether these unpacked first bytes of a file have a line with a time."""
    return _PREFIX in head and _LINE_IN_HEAD.search(head) is not None


def read_dcgm_line(line: str) -> GpuSample | bool:
    """Read one line; a `ReadLine`."""
    if line.startswith("#"):
        return True
    match = _LINE.match(line.strip())
    if match is None:
        return False
    name, labels, value, time_ms = match.groups()
    try:
        number = float(value)
    except ValueError:
        return False
    fields = dict(_LABEL.findall(labels))
    gpu = gpu_label(f"GPU {fields.get('gpu', '?')}", fields.get("modelName"), fields.get("Hostname"))
    values = [(name, number)] if math.isfinite(number) else []
    return GpuSample(int(time_ms) * 10**6, gpu, values)
