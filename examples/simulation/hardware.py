"""What an H100 takes for a kernel: the longer of its arithmetic and its traffic, at a common share of the peak.

Peaks are those of an H100 SXM: 989.4 TFLOP/s of dense bfloat16, 3.35 TB/s of memory, NVLink 4 with 900 GB/s. The
shares below are what large kernels commonly reach; all times are in nanoseconds.
"""

from __future__ import annotations

from typing import NamedTuple

FLOPS_PER_NS = 989_400
BYTES_PER_NS = 3_350
LINK_BYTES_PER_NS = 360
"""Bus bandwidth that an all-reduce reaches among eight GPUs."""
LEAST_NS = 2_200
COLLECTIVE_NS = 18_000

DEVICE = {
    "name": "NVIDIA H100 80GB HBM3",
    "totalGlobalMem": 85_017_755_648,
    "computeMajor": 9,
    "computeMinor": 0,
    "maxThreadsPerBlock": 1024,
    "maxThreadsPerMultiprocessor": 2048,
    "regsPerBlock": 65536,
    "warpSize": 32,
    "sharedMemPerBlock": 49152,
    "numSms": 132,
    "regsPerMultiprocessor": 65536,
    "sharedMemPerBlockOptin": 232448,
    "sharedMemPerMultiprocessor": 233472,
}


class Kernel(NamedTuple):
    """One launch: its name, its work and how it fills the device."""

    name: str
    flops: float
    bytes: float
    reached: float = 0.85
    block: int = 256
    blocks: int = 1056
    registers: int = 32
    shared_memory: int = 0
    occupancy: int = 100
    """Percent, as CUPTI estimates it."""

    @property
    def duration(self) -> float:
        arithmetic = self.flops / FLOPS_PER_NS
        traffic = self.bytes / BYTES_PER_NS
        return LEAST_NS + max(arithmetic, traffic) / self.reached

    def arguments(self) -> dict[str, object]:
        warps = self.block // 32
        return {
            "registers per thread": self.registers,
            "shared memory": self.shared_memory,
            "blocks per SM": round(self.blocks / DEVICE["numSms"], 6),  # type: ignore[operator]
            "warps per SM": round(self.blocks * warps / DEVICE["numSms"], 6),  # type: ignore[operator]
            "grid": [self.blocks, 1, 1],
            "block": [self.block, 1, 1],
            "est. achieved occupancy %": self.occupancy,
        }


def all_reduce(bytes_: int, ranks: int) -> float:
    """Return the duration of a ring: each GPU sends 2 (n - 1) / n of the data."""
    return COLLECTIVE_NS + bytes_ * 2 * (ranks - 1) / ranks / LINK_BYTES_PER_NS
