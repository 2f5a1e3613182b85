"""The summary of a run that has memory snapshots and no traces."""

from __future__ import annotations

from torch_tb_profiler.base.errors import ProfilerError
from torch_tb_profiler.summary.payload import VERSION, Health, Memory, Summary, SummaryAdvice
from torch_tb_profiler.summary.source import SummarySource
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.memory.snapshot.payload import MemorySnapshot

_NO_TRACE = "the run has memory snapshots only; record a trace with `torch.profiler` too"


def summarize_snapshots(source: SummarySource) -> Summary | None:
    """Summarize the snapshots of a run, the one that ran out of memory first; None if it has none."""
    snapshots: dict[str, MemorySnapshot] = {}
    unreadable: dict[str, ProfilerError] = {}
    for worker in source.workers:
        try:
            snapshots[worker] = source.answer("memory/snapshot", worker)
        except ProfilerError as error:
            unreadable[worker] = error
    if not snapshots:
        return None
    worker = max(snapshots, key=lambda name: _urgency(snapshots[name]))
    decisive = snapshots[worker]
    notes = [
        f"{name}: {plain(each.reasons[reason])}"
        for name, each in snapshots.items()
        for reason in ("incomplete", "skipped")
        if reason in each.reasons
    ]
    notes += [f"{name} can't be read: {error.message}" for name, error in unreadable.items()]
    return Summary(
        version=VERSION,
        run=source.run,
        span=source.span,
        workers=len(source.workers),
        read=len(snapshots),
        ranks=None,
        headline=[sentence for text in (decisive.headline, decisive.details) if (sentence := plain(text))],
        bound="",
        bound_worker=worker,
        step=None,
        operators=[],
        kernels=[],
        modules=[],
        devices=None,
        communication=None,
        memory=Memory(worker, f"GPU {decisive.device}", decisive.peak_allocated_bytes, None, []),
        advice=[
            SummaryAdvice(plain(remedy), "", "payoff not estimated", None, None, worker)
            for remedy in (decisive.oom[-1].remedies if decisive.oom else [])
        ],
        health=Health(0, len(notes) - len(unreadable), len(unreadable), notes),
        reasons=dict.fromkeys(("step", "operators", "kernels", "modules", "devices", "communication"), _NO_TRACE),
    )


def _urgency(snapshot: MemorySnapshot) -> tuple[bool, int]:
    """Return what makes a snapshot the one to look at first: it ran out of memory, and how much it used."""
    return bool(snapshot.out_of_memory), snapshot.peak_allocated_bytes
