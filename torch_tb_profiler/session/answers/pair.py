"""Answer views of a pair: a candidate and the base it is compared with, each of one recording or several."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from torch_tb_profiler.base.errors import NotFoundError, UndecidedError, UsageError
from torch_tb_profiler.discovery import ListedRun
from torch_tb_profiler.session.answers.answer import Answer, ViewRequest, check_available
from torch_tb_profiler.session.cache.entries import encode_json
from torch_tb_profiler.session.cache.similarity import name_similarity
from torch_tb_profiler.session.files import RequestedFiles
from torch_tb_profiler.session.state import FileState
from torch_tb_profiler.session.targets import RequestedNames, Target, Targets
from torch_tb_profiler.view import ALSO, BASE, BASE_ALSO, OF_PAIR, PairView, View, parse_params

if TYPE_CHECKING:
    from torch_tb_profiler.model.trace import Trace

MIN_SIMILARITY = 0.5
"""A run with a smaller share of operator names in common is another program and is not compared by default."""


class PairAnswers:
    """The answers of views of a pair."""

    def __init__(self, files: RequestedFiles, targets: Targets) -> None:
        self._files = files
        self._targets = targets

    def answer(self, view: PairView[Any, Any], request: ViewRequest) -> Answer:
        from torch_tb_profiler.model.trace import TracePair

        view_params = {name: text for name, text in request.params.items() if name not in OF_PAIR}
        params = parse_params(view.params, view_params)
        while True:
            first = self._request(request, request.names)
            base_names = self._choose_base(request, first, getattr(params, "other", None))
            if base_names is None:
                return Answer(view.slug, *first.names, self._files.state(first.file.id), None)
            base_first = self._request(request, base_names)
            candidate = self._request_side(request, first, ALSO)
            base = self._request_side(request, base_first, BASE_ALSO)
            targets = [*candidate, *base]
            state, traces = self._open(view, targets)
            if traces is None:
                return Answer(view.slug, *first.names, state, None, base=base_first.names)
            current = all(
                self._targets.find(RequestedNames(*target.names)).trace == target.trace for target in targets
            )
            # A file that was loaded in the meantime may hold several ranks, or be of another program than thought.
            if current and self._choose_base(request, first, getattr(params, "other", None)) == base_names:
                break
        pair = TracePair(traces[len(candidate) :], traces[: len(candidate)], _is_one_run([*base, *candidate]))
        payload = encode_json(view.build(pair, params))
        return Answer(view.slug, *first.names, state, payload, base=base_first.names)

    def _choose_base(self, request: ViewRequest, first: Target, other: str | None) -> RequestedNames | None:
        """Return the names of the base; None until a default can be chosen.

        other  the run of the base, if the view has such a parameter
        """
        named = RequestedNames(*(request.params.get(name) for name in BASE))
        if other is not None and named.run is None:
            named = named._replace(run=other)
        return find_default_base(self._files, self._targets, first) if named == RequestedNames() else named

    def _open(self, view: View, targets: list[Target]) -> tuple[FileState, list[Trace] | None]:
        """Return the traces and the state of the last, or None and the state of the first that isn't ready."""
        traces: list[Trace] = []
        for target in targets:
            check_available(view, self._files.summary(target.file.id), target)
            state, trace = self._files.open(target.file.id, target.part)
            if trace is None:
                return state, None
            traces.append(trace)
        return state, traces

    def _request(self, request: ViewRequest, names: RequestedNames) -> Target:
        return self._targets.resolve_and_request(names, request.wait, request.timeout)

    def _request_side(self, request: ViewRequest, first: Target, parameter: str) -> list[Target]:
        """Request all recordings of one side, and return them."""
        further = _parse_further_recordings(parameter, request.params.get(parameter))
        side = [first, *(self._request(request, names) for names in further)]
        if len({target.names for target in side}) < len(side):
            raise UsageError(f"parameter {parameter!r} names the same recording twice")
        return side


def _parse_further_recordings(parameter: str, text: str | None) -> list[RequestedNames]:
    """Parse the recordings that a side has in addition to its first."""
    if text is None:
        return []
    try:
        listed = msgspec.json.decode(text, type=list[tuple[str, str | None, str | None]])
    except msgspec.DecodeError as error:
        hint = 'use a JSON list such as [["run", "worker", "2"]]'
        raise UsageError(f"parameter {parameter!r} cannot be {text!r}", hint=hint) from error
    return [RequestedNames(*names) for names in listed]


def _is_one_run(targets: list[Target]) -> bool:
    """Return whether all targets are spans of one worker, whose files are in one folder."""
    workers = {
        (posixpath.dirname(target.file.id.uri), target.worker.name, target.worker.rank) for target in targets
    }
    return len(workers) == 1


# ---- default base ---------------------------------------------------------------------------------------


def find_default_base(files: RequestedFiles, targets: Targets, candidate: Target) -> RequestedNames | None:
    """Return what a candidate is compared with if the request names no base.

    That is the previous span. For a first span it is the same worker and span of the most similar run; with
    only one run, it is its first other worker or span.

    The most similar run has the most operator names in common; ties go to a run on the same devices. A run that
    was never loaded can't be judged; it is taken if it is the only other one. Returns None while the candidate is
    not loaded and there are several runs to choose from. Raises UndecidedError if no run is similar.
    """
    spans = [span.name for span in candidate.worker.spans]
    index = spans.index(candidate.span.name)
    if index:
        return RequestedNames(candidate.run.name, candidate.worker.name, spans[index - 1])
    others = [run for run in targets.runs if run.workers and run.name != candidate.run.name]
    return _find_most_similar(files, targets, candidate, others) if others else _find_sibling(targets, candidate)


def _find_most_similar(
    files: RequestedFiles, targets: Targets, candidate: Target, others: Sequence[ListedRun]
) -> RequestedNames | None:
    """Return the counterpart of the candidate in the most similar of the other runs (see `find_default_base`)."""
    candidate_summary = files.cached_summary(candidate.file.id)
    similar: list[tuple[float, bool, RequestedNames]] = []
    unknown: list[RequestedNames] = []
    for run in others:
        names = _find_counterpart(targets, candidate, run)
        summary = files.cached_summary(targets.find(names).file.id)
        if candidate_summary is None or summary is None:
            unknown.append(names)
            continue
        similarity = name_similarity(candidate_summary.sketch, summary.sketch)
        if similarity >= MIN_SIMILARITY:
            same_devices = candidate_summary.sketch.devices == summary.sketch.devices
            similar.append((round(similarity, 1), same_devices, names))
    if similar:
        return max(similar, key=lambda item: item[:2])[2]
    if len(others) == 1 and unknown:
        return unknown[0]
    if candidate_summary is None:
        return None
    compared = "none of the runs read so far" if unknown else "no other run"
    raise UndecidedError(f"{compared} has similar operators: choose the run to compare with", hint="pass base_run")


def _find_counterpart(targets: Targets, candidate: Target, run: ListedRun) -> RequestedNames:
    """Return the same worker and span of another run, or its first ones if it doesn't have them."""
    workers = {worker.name: worker for worker in targets.workers(run)}
    worker = workers.get(candidate.worker.name)
    spans = {span.name for span in worker.spans} if worker is not None else set()
    span = candidate.span.name if candidate.span.name in spans else None
    return RequestedNames(run.name, worker.name if worker is not None else None, span)


def _find_sibling(targets: Targets, candidate: Target) -> RequestedNames:
    """Return the first other worker or span of the only run."""
    for worker in targets.workers(candidate.run):
        for span in worker.spans:
            names = RequestedNames(candidate.run.name, worker.name, span.name)
            if tuple(names) != tuple(candidate.names):
                return names
    raise NotFoundError("there is only one trace", hint="add a second run to the log folder to compare with")
