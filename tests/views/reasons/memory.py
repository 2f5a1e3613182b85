"""Why fields of Memory are null: a recording of which they are for that reason, and the next one."""

from __future__ import annotations

from typing import Any

from tests.support.claims import Claim, ReadSentences
from tests.support.memory_traces import CALLS, EVENTS, STEPS, memory, steps_that_leave
from tests.support.traces import draw
from tests.views.reasons.fields import GPU, of
from tests.views.reasons.tabs import MM


def in_memory(name: str, events: str = EVENTS, calls: str = CALLS, **metadata: Any) -> ReadSentences:
    """Read why a field of Memory is null."""
    return of("memory", name, draw(calls, *memory(events), **metadata))


def live(name: str, at: int, events: str = EVENTS) -> ReadSentences:
    """Read why a field of the live memory of a GPU at `at` us is null."""
    return of("memory/live", name, draw(CALLS, *memory(events)), device="GPU0", at=at * 1000)


CPU_EVENTS = "90 CPU a 64 64 0\n95 CPU b 64 128 0"


def without(column: int) -> str:
    """Return the memory events without a column: 2 addresses, 4 and 5 totals."""
    lines = []
    for line in EVENTS.strip().splitlines():
        parts = line.split()
        parts[column] = "-"
        if column == 4:
            parts[5] = "-"
        lines.append(" ".join(parts))
    return "\n".join(lines)


CLAIMS = {
    "views/memory/words.py": [
        Claim(
            "the file does not describe the device (`deviceProperties`)",
            r"the file does not describe the device \(`deviceProperties`\)",
            in_memory("capacity_bytes"),
            "it does",
            in_memory("capacity_bytes", **GPU),
        ),
        Claim(
            "the capacity of host memory is not recorded",
            "the capacity of host memory is not recorded",
            in_memory("capacity_bytes", CPU_EVENTS),
            "memory is on the device alone",
            in_memory("capacity_bytes", "20 GPU0 a 512 1512 4096", **GPU),
        ),
        Claim(
            "the file has no totals (PyTorch before 1.10)",
            "the file has no totals",
            in_memory("peak_allocated", without(4)),
            "it has",
            in_memory("peak_allocated"),
        ),
        Claim(
            "change since the start of the trace; totals were not recorded",
            "change since the start of the trace; totals were not recorded",
            in_memory("curve", without(4)),
            "they were",
            in_memory("curve"),
        ),
        Claim(
            "no reserved memory was recorded; the CPU allocator reserves none",
            "no reserved memory was recorded",
            in_memory("fragmentation", CPU_EVENTS),
            "a GPU's allocator reserves some",
            in_memory("fragmentation"),
        ),
        Claim(
            "the file has no addresses (PyTorch before 1.10)",
            r"the file has no addresses \(PyTorch before 1\.10\)$",
            in_memory("unreleased", without(2)),
            "it has",
            in_memory("unreleased"),
        ),
        Claim(
            "the file has no addresses (PyTorch before 1.10), so allocations and releases can't be matched",
            "the file has no addresses .*, so allocations and releases can't be matched",
            in_memory("growth", without(2), STEPS),
            "it has",
            in_memory("growth", EVENTS, STEPS),
        ),
        Claim(
            "no call stacks were recorded ({})",
            "no call stacks were recorded",
            in_memory("stacks", calls=STEPS),
            "frames are",
            in_memory("stacks"),
        ),
        Claim(
            "no nn.Module was recorded ({})",
            "no nn.Module was recorded",
            in_memory("modules", calls=STEPS),
            "one is",
            in_memory("modules"),
        ),
        Claim(
            "no steps were recorded ({})",
            "no steps were recorded",
            in_memory("growth", calls=MM),
            "five are",
            in_memory("growth", calls=STEPS),
        ),
        Claim(
            "growth needs {} {}s; this trace has {}",
            "growth needs 4 steps; this trace has 3",
            of("memory", "growth", steps_that_leave(300, 300, 300)),
            "it has four",
            of("memory", "growth", steps_that_leave(300, 300, 300, 300)),
        ),
        Claim(
            "the first memory events of a device have no totals",
            "the first memory events of a device have no totals",
            in_memory("growth", "20 GPU0 a 512 - -\n30 GPU0 b 100 1612 4096", STEPS),
            "they have",
            in_memory("growth", "20 GPU0 a 512 1512 4096\n30 GPU0 b 100 1612 4096", STEPS),
        ),
    ],
    "views/memory/tables.py": [
        Claim(
            "the file has no totals (PyTorch before 1.10)",
            "the file has no totals",
            live("allocated_bytes", 100, without(4)),
            "it has",
            live("allocated_bytes", 100),
        ),
        Claim(
            "the recorded total is missing here, or less than the live blocks",
            "the recorded total is missing here, or less than the live blocks",
            live("older_bytes", 40, "20 GPU0 a 512 512 4096\n30 GPU0 b 100 200 4096"),
            "it is as much",
            live("older_bytes", 40, "20 GPU0 a 512 512 4096\n30 GPU0 b 100 612 4096"),
        ),
        Claim(
            "nothing was recorded before the device's first memory event",
            "nothing was recorded before the device's first memory event",
            live("allocated_bytes", 10),
            "it is at that event",
            live("allocated_bytes", 20),
        ),
    ],
}

NO_CLAIMS: dict[str, str] = {}
"""Reasons that say nothing that a trace could make false."""
