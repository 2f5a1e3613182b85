"""Samples of GPUs that `nvidia-smi --query-gpu=timestamp,... --format=csv` writes beside a run."""

from __future__ import annotations

from torch_tb_profiler.ingest.formats import TraceFormat
from torch_tb_profiler.ingest.nvidia_smi.read import read_samples
from torch_tb_profiler.ingest.nvidia_smi.table import looks_like_samples

__all__ = ["FORMATS"]

FORMATS = (TraceFormat("nvidia-smi samples", (".csv", ".csv.gz"), looks_like_samples, read_samples, alone=True),)
