"""The summary of a run that has memory snapshots and no traces."""

from __future__ import annotations

from collections.abc import Mapping

from torch_tb_profiler.base.grammar import plural
from torch_tb_profiler.summary.payload import VERSION, Health, Memory, Summary, SummaryAdvice
from torch_tb_profiler.summary.source import SummarySource, collect_answers
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.memory.snapshot.payload import MemorySnapshot

_NO_TRACE = "the run has memory snapshots only; record a trace with `torch.profiler` too"


def summarize_snapshots(source: SummarySource) -> Summary | None:
    """Summarize the snapshots of a run, the one that ran out of memory first; None if it has none."""
    snapshots: dict[str, MemorySnapshot]
    snapshots, unreadable = collect_answers(source, "memory/snapshot", source.workers)
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
        headline=[*_failed_workers(snapshots), *_sentences(worker if len(snapshots) > 1 else "", decisive)],
        bound="",
        bound_worker=worker,
        step=None,
        operators=[],
        kernels=[],
        modules=[],
        devices=None,
        communication=None,
        memory=Memory(
            worker,
            f"GPU {decisive.device}",
            decisive.peak_allocated_bytes,
            None,
            [],
            requested=all(
                each.requested_bytes is not None for each in decisive.devices if each.id == decisive.device
            ),
        ),
        advice=[
            SummaryAdvice(plain(remedy), "", "payoff not estimated", None, None, worker)
            for remedy in (decisive.oom[-1].remedies if decisive.oom else [])
        ],
        health=Health(0, len(notes) - len(unreadable), len(unreadable), notes),
        reasons=dict.fromkeys(("step", "operators", "kernels", "modules", "devices", "communication"), _NO_TRACE),
    )


def _failed_workers(snapshots: Mapping[str, MemorySnapshot]) -> list[str]:
    """Return how many of several snapshots ran out of memory; nothing if at most one did."""
    failed = sum(bool(each.out_of_memory) for each in snapshots.values())
    return [f"{failed} of {plural(len(snapshots), 'snapshot')} ran out of memory."] if failed > 1 else []


def _sentences(worker: str, snapshot: MemorySnapshot) -> list[str]:
    """Return the sentences about a snapshot; `worker` names its process, "" where it is the only one."""
    lead = f"{worker}: " if worker else ""
    return [f"{lead}{sentence}" for text in (snapshot.headline, snapshot.details) if (sentence := plain(text))]


def _urgency(snapshot: MemorySnapshot) -> tuple[bool, int]:
    """Return what makes a snapshot the one to look at first: it ran out of memory, and how much it used."""
    return bool(snapshot.out_of_memory), snapshot.peak_allocated_bytes
