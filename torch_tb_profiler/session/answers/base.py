"""What a trace is compared with where nothing is named."""

from __future__ import annotations

from collections.abc import Sequence

from torch_tb_profiler.base.errors import NotFoundError, UndecidedError
from torch_tb_profiler.discovery import Run
from torch_tb_profiler.session.files import Files
from torch_tb_profiler.session.kept.likeness import Sketch, common_names
from torch_tb_profiler.session.targets import Names, Target, Targets

ALIKE = 0.5
"""A run of another program, which has less than this share of the names in common, is not compared unasked."""


def base_of(files: Files, targets: Targets, candidate: Target) -> Names | None:
    """The previous span; of a first span the same worker and span of the run most alike; the first other worker,
    or span, where there is but one run.

    Most alike: with the most names of operators in common, among equals on the same devices. Of a run that was
    never read nothing is known; it is taken if it is the only other one. None while the candidate is not read and
    there are several to choose from. Raises UndecidedError if no run is alike.
    """
    spans = [span.name for span in candidate.worker.spans]
    at = spans.index(candidate.span.name)
    if at:
        return Names(candidate.run.name, candidate.worker.name, spans[at - 1])
    others = [run for run in targets.runs if run.name != candidate.run.name]
    return _most_alike(files, targets, candidate, others) if others else _sibling(targets, candidate)


def _most_alike(files: Files, targets: Targets, candidate: Target, others: Sequence[Run]) -> Names | None:
    own = files.kept_summary(candidate.file.id)
    likely: list[tuple[float, bool, Names]] = []
    unknown: list[Names] = []
    for run in others:
        names = _counterpart(targets, candidate, run)
        summary = files.kept_summary(targets.find(names).file.id)
        if own is None or summary is None:
            unknown.append(names)
        elif (share := common_names(own.sketch, summary.sketch)) >= ALIKE:
            likely.append((round(share, 1), _same_devices(own.sketch, summary.sketch), names))
    if likely:
        return max(likely, key=lambda each: each[:2])[2]
    if len(others) == 1 and unknown:
        return unknown[0]
    if own is None:
        return None
    alike = "no other run that was read" if unknown else "no other run"
    raise UndecidedError(f"{alike} has similar operators: choose one to compare with", hint="name a base_run")


def _counterpart(targets: Targets, candidate: Target, run: Run) -> Names:
    """The same worker and span of a run, the first ones where it has no such."""
    workers = {worker.name: worker for worker in targets.workers(run)}
    worker = workers.get(candidate.worker.name)
    known = {span.name for span in worker.spans} if worker is not None else set()
    span = candidate.span.name if candidate.span.name in known else None
    return Names(run.name, worker.name if worker is not None else None, span)


def _same_devices(one: Sketch, other: Sketch) -> bool:
    return one.devices == other.devices


def _sibling(targets: Targets, candidate: Target) -> Names:
    """The first other worker or span of the only run."""
    for worker in targets.workers(candidate.run):
        for span in worker.spans:
            names = Names(candidate.run.name, worker.name, span.name)
            if tuple(names) != tuple(candidate.names):
                return names
    raise NotFoundError("there is only one trace", hint="put a second run into the log folder to compare with")
