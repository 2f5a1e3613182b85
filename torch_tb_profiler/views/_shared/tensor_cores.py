"""Kernel time on Tensor Cores as views answer it."""

from __future__ import annotations

import msgspec

from torch_tb_profiler.analyses.shared.core_time import CoreTime
from torch_tb_profiler.model.devices import device_kind
from torch_tb_profiler.model.trace import Trace


def cores_name(trace: Trace) -> str:
    """What the maker of the devices calls them."""
    return "Matrix Cores" if device_kind(trace) == "ROCm" else "Tensor Cores"


class TensorCoreTime(msgspec.Struct, frozen=True):
    """All kernel time: on Tensor (matrix) cores, off them, and of kernels whose names do not tell."""

    used_ns: int
    not_used_ns: int
    unknown_ns: int


def tensor_core_time(time: CoreTime) -> TensorCoreTime:
    """The sums of an analysis."""
    return TensorCoreTime(time.used, time.not_used, time.unknown)
