"""Draws metrics of iterations as AORTA's benchmarks write them, and counts their overlap µs by µs.

Busy("compute", 0, 100)    the stream is busy from 0 to 100 µs after the iteration's start
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple


class Busy(NamedTuple):
    """A range, µs; `function` of a collective."""

    stream: str
    start: int
    end: int
    function: str | None = None


STREAMS = ("compute", "allreduce", "reducescatter", "aux")


def line(step: int, ranges: Sequence[Busy], total: int, *, rank: int = 0, **more: Any) -> dict[str, Any]:
    """Return one iteration of `total` µs, with what the recorder makes of its ranges."""
    profile = {
        "index": step,
        "total_ms": total / 1000,
        "ranges": [
            {
                "stream": each.stream,
                "tag": each.function or f"epoch0_step{step}_{each.stream}",
                "start_ms": each.start / 1000,
                "end_ms": each.end / 1000,
                "duration_ms": (each.end - each.start) / 1000,
                "metadata": {"function": each.function} if each.function else {},
            }
            for each in ranges
        ],
        "markers": [{"stream": "compute", "tag": f"step{step}_end", "time_ms": total / 1000, "metadata": {}}],
        "overlap": count_ranges(ranges, total),
    }
    metadata = {
        "rank": rank,
        "world_size": 2,
        "epoch": 0,
        "step": step,
        "global_step": step,
        "loss": 1 / (step + 1),
    }
    return {**metadata, "grad_norm": None, "lr": 0.001, "profile": profile, **more}


def count_ranges(ranges: Sequence[Busy], total: int) -> dict[str, Any]:
    """Count as the recorder does, µs by µs: a stream is a switch that the first end turns off."""
    edges = sorted([(r.start, 0, r.stream) for r in ranges] + [(r.end, 1, r.stream) for r in ranges])
    on: set[str] = set()
    per_stream: dict[str, float] = {}
    overlap: dict[str, float] = {}
    segments, now = [], 0
    for moment, is_end, stream in edges:
        for _ in range(now, moment):
            for name in on:
                per_stream[name] = per_stream.get(name, 0) + 1
            for name in _overlaps(on):
                overlap[name] = overlap.get(name, 0) + 1
        if moment > now:
            segments.append({"start_ms": now / 1000, "end_ms": moment / 1000, "active_streams": sorted(on)})
        now = moment
        if is_end:
            on.discard(stream)
        else:
            on.add(stream)
    overlap.setdefault("idle", max(total - len(active(ranges)), 0))
    return {
        "per_stream_ms": {name: us / 1000 for name, us in per_stream.items()},
        "overlap_ms": {name: us / 1000 for name, us in overlap.items()},
        "active_segments": segments,
        "utilization": {name: per_stream.get(name, 0) / total for name in STREAMS},
    }


def _overlaps(on: set[str]) -> list[str]:
    if not on:
        return ["idle"]
    hidden = [name for name in ("allreduce", "reducescatter") if name in on and "compute" in on]
    return [*(f"compute_{name}" for name in hidden), *(["compute_comm"] if hidden else [])]


def active(ranges: Sequence[Busy], *streams: str, function: str | None = None) -> set[int]:
    """Return the microseconds in which any range (of these streams, of this function) runs."""
    chosen = [
        r for r in ranges if (not streams or r.stream in streams) and (function is None or r.function == function)
    ]
    return {us for each in chosen for us in range(each.start, each.end)}


def smi_output(*gpus: Mapping[str, object]) -> str:
    """Return what `rocm-smi` prints of these GPUs: by name of the reading, its value."""
    lines = [
        f"GPU[{number}]\t\t: {name}: {value}" for number, gpu in enumerate(gpus) for name, value in gpu.items()
    ]
    return "\n".join(["=== ROCm System Management Interface ===", *lines, "=== End of ROCm SMI Log ==="])


def write(folder: Path, rank: int, lines: Sequence[dict[str, Any]]) -> Path:
    """Append lines to the file of a rank, as every run does."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"rank_{rank:02d}_metrics.jsonl"
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(each) + "\n" for each in lines)
    return path


def iteration(seed: int) -> list[Busy]:
    """Return an iteration as FSDP runs it: gathers on `aux`, collectives beside and after the computation."""
    return [
        Busy("aux", 0, 20),
        Busy("aux", 25, 45 + seed, "all_gather_into_tensor"),
        Busy("compute", 40, 140 + seed),
        Busy("compute", 150, 300),
        Busy("reducescatter", 120, 170 + 2 * seed, "reduce_scatter_tensor"),
        Busy("allreduce", 280, 340 + 3 * seed, "all_reduce"),
        Busy("reducescatter", 290, 350, "reduce_scatter_tensor"),
        Busy("aux", 400, 430),
    ]
