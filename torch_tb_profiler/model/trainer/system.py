"""What Composer's samples of the machine mean: their names, scales, and which of them only ever grow.

Its memory is bytes / 512 under names that say GB, its network bytes / 8 under names that say KB: bytes are divided
by 2**9 and 2**3 where 2**30 and 2**10 were meant. Disk and network count since the machine booted.
"""

from __future__ import annotations

from typing import NamedTuple

MACHINE_MEMORY = ("memory/virtual", "memory/swap")
MEMORY_FIELDS = ("used_gb", "free_gb", "available_gb")

MAX_MEMORY_GB = 10_000.0
"""A machine with more than 10 TB is rarer than the wrong scale: 5 MB of memory are beyond it."""

_DISK = {
    "bytes": ("bytes/s", 1.0),
    "count": ("/s", 1.0),
    "time": ("ratio", 0.001),  # ms of a second
}


class MachineMetric(NamedTuple):
    """How a counter is read: value = `scale` x sample, or its growth per second if `grows`."""

    title: str
    unit: str
    scale: float
    grows: bool = False


def machine_metric(counter: str, argument: str, largest: float, misnamed: bool) -> MachineMetric | None:
    """What a sample of the machine means; None if it is none, or its scale is not known.

    largest   of the samples of this counter
    misnamed  the memory of the machine exceeds `MAX_MEMORY_GB` in this file: it is bytes / 512
    """
    parts = counter.split("/")
    match parts:
        case ["cpu"] if argument == "cpu_percent":
            return MachineMetric("CPU", "ratio", 0.01)
        case ["memory", "cuda", what] if argument == what and what.endswith("_mem") and largest < MAX_MEMORY_GB:
            return MachineMetric(f"CUDA memory: {_words(what.removesuffix('_mem'))}", "bytes", 1e9)
        case ["memory", "virtual" | "swap" as where] if argument in MEMORY_FIELDS and misnamed:
            return MachineMetric(f"{where.capitalize()} memory: {argument.removesuffix('_gb')}", "bytes", 512.0)
        case ["network", nic, "kb_sent" | "kb_recv" as what] if argument == what:
            return MachineMetric(
                f"Network {nic}: {'sent' if what == 'kb_sent' else 'received'}", "bytes/s", 8.0, True
            )
        case ["disk", *disk, what] if disk and argument in ("field_name", what):
            action, _, sort = what.rpartition("_")
            if action and sort in _DISK:
                unit, scale = _DISK[sort]
                noun = {"bytes": "", "count": " operations", "time": " time"}[sort]
                return MachineMetric(f"Disk {'/'.join(disk)}: {_words(action)}{noun}", unit, scale, True)
    return None


def _words(name: str) -> str:
    return name.replace("_", " ")
