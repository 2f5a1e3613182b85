"""Draws traces as Composer's profiler writes them: a list of events per cycle and rank, times in whole µs.

Batch(load=60, forward=20, backward=15)     60 µs in the loader, then a batch of 40 µs
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

EPOCH = 1_700_000_000_000_000
"""µs."""

LOOP = 4242
"""The process of the training loop: its main thread."""


class Batch(NamedTuple):
    """µs; the rest of `work` is the optimizer and callbacks."""

    load: int = 60
    forward: int = 20
    backward: int = 15
    work: int = 40


def cycle(
    batches: Sequence[Batch], *, rank: int = 0, first: int = 0, start: int = EPOCH, sync: int = 0, loader: str = ""
) -> list[dict[str, Any]]:
    """Yield one cycle of a rank; its clock shows `sync` when all ranks meet (µs, `start` if 0)."""

    def event(name: str, ph: str, ts: int, args: dict[str, Any]) -> dict[str, Any]:
        return {"name": name, "cat": "", "ph": ph, "ts": ts, "pid": rank, "tid": LOOP, "args": args}

    def metadata_events() -> Iterator[dict[str, Any]]:
        yield event("process_name", "M", start, {"name": f"Rank {rank} training loop process"})
        yield event("thread_name", "M", start, {"name": "Training Loop"})
        yield event("global_rank", "M", start, {"value": rank})
        yield event("clock_sync_timestamp_us", "M", start, {"value": sync or start})
        yield event("clock_sync_error_bound", "M", start, {"value": 7})
        # The handler itself runs while a file is written: its event ends in the next one.
        yield event("callback/JSONTraceHandler/event/batch_end", "E", start, {"epoch": 0, "batch": first})
        now = start
        for number, each in enumerate(batches, first):
            args = {"epoch": 0, "batch": number}
            loaded_at = now + each.load
            for name, begin, end in (
                (loader or "event/dataloader", now, loaded_at),
                ("event/batch", loaded_at, loaded_at + each.work),
                ("event/train_batch", loaded_at, loaded_at + each.work),
                ("event/forward", loaded_at, loaded_at + each.forward),
                ("event/backward", loaded_at + each.forward, loaded_at + each.forward + each.backward),
            ):
                yield event(name, "B", begin, args)
                yield event(name, "E", end, args)
            now = loaded_at + each.work
        yield event("callback/JSONTraceHandler/event/batch_end", "B", now, {"epoch": 0, "batch": first})

    events = list(metadata_events())
    events.sort(key=lambda each: each["ts"])
    return events


def counter(name: str, ts: int, values: dict[str, float], *, rank: int = 0) -> dict[str, Any]:
    """Return a sample of the machine."""
    return {"name": name, "cat": "cpu", "ph": "C", "ts": ts, "pid": rank, "tid": LOOP, "args": values}


def content(events: Sequence[dict[str, Any]], *, closed: bool = True) -> bytes:
    """Return the bytes of a file; `closed`: with the bracket that older versions leave out."""
    return ("[\n" + ",\n".join(map(json.dumps, events)) + ("\n]\n" if closed else ",\n")).encode()


def merge_ranks(*ranks: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return all ranks in one list, on the clock of the lowest one, as Composer merges them."""
    synced = [
        next(e["args"]["value"] for e in events if e["name"] == "clock_sync_timestamp_us") for events in ranks
    ]
    reference = synced[min(range(len(ranks)), key=lambda at: ranks[at][0]["pid"])]
    return [
        {**each, "ts": each["ts"] + reference - mine}
        for events, mine in zip(ranks, synced, strict=True)
        for each in events
    ]


QUARTER_US = 7_889_238_000_000
"""What PyTorch's times count from since 2024: the last multiple, which `baseTimeNanoseconds` holds."""


def pytorch_events(*, start: int = EPOCH, kernel: int = 12) -> list[dict[str, Any]]:
    """Return PyTorch's events in the first batch: an operator 65 µs after its start launches a kernel at 75 µs."""

    def event(cat: str, name: str, pid: int, tid: int, at: int, dur: int, **args: Any) -> dict[str, Any]:
        ts = (start + at) % QUARTER_US
        return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}

    return [
        event("cpu_op", "aten::mm", LOOP, LOOP, 65, 10, **{"External id": 1}),
        event("cuda_runtime", "cudaLaunchKernel", LOOP, LOOP, 68, 4, correlation=7),
        event("kernel", "gemm", 0, 7, 75, kernel, correlation=7, device=0, stream=7),
    ]


def apart(rank: int, *, ahead: int = 5_000_000) -> list[dict[str, Any]]:
    """Return a rank that shares no collective with others: only the meeting gives its clock (`ahead` µs)."""
    start = EPOCH + ahead * rank
    collective = "AllReduce" if rank % 2 == 0 else "AllGather"
    name = f"ncclDevKernel_{collective}_Sum_f32_RING_LL(ncclDevKernelArgs)"
    talk = {
        "ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 9, "ts": (start + 88) % QUARTER_US, "dur": 9,
        "args": {"device": 0, "stream": 9, "correlation": 8},
    }  # fmt: skip
    own = cycle([Batch()] * 3, rank=rank, start=start, sync=EPOCH - 100 + ahead * rank)
    return [*own, *copy_events([*pytorch_events(start=start), talk], rank)]


def pytorch_file(events: Sequence[dict[str, Any]], rank: int, ranks: int = 2) -> bytes:
    """Return the file of a rank that PyTorch itself writes."""
    return json.dumps(
        {
            "schemaVersion": 1,
            "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB", "totalGlobalMem": 85_000_000_000}],
            "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": ranks},
            "traceEvents": list(events),
            "baseTimeNanoseconds": EPOCH // QUARTER_US * QUARTER_US * 1000,
        }
    ).encode()


def copy_events(events: Sequence[dict[str, Any]], rank: int) -> list[dict[str, Any]]:
    """Copy events as Composer copies them into its own file: the process is the rank."""
    return [{**each, "pid": rank} for each in events]
