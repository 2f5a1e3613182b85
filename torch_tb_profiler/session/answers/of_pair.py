"""Views of two sides: a candidate and the base it is compared with, each of one recording or several."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Any

import msgspec

from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.session.answers.answer import Answer, Question, check_available
from torch_tb_profiler.session.answers.base import base_of
from torch_tb_profiler.session.files import Files
from torch_tb_profiler.session.kept.summary import encode
from torch_tb_profiler.session.state import FileState
from torch_tb_profiler.session.targets import Names, Target, Targets
from torch_tb_profiler.view import ALSO, BASE, BASE_ALSO, OF_PAIR, PairView, View, parse_params

if TYPE_CHECKING:
    from torch_tb_profiler.model.trace import Trace


class PairAnswers:
    def __init__(self, files: Files, targets: Targets) -> None:
        self._files = files
        self._targets = targets

    def answer(self, view: PairView[Any, Any], question: Question) -> Answer:
        from torch_tb_profiler.model.pair import TracePair

        own = {name: text for name, text in question.params.items() if name not in OF_PAIR}
        params = parse_params(view.params, own)
        while True:
            first = self._ready(question, question.names)
            base_names = self._base(question, first)
            if base_names is None:
                return Answer(view.slug, *first.names, self._files.state(first.file.id), None)
            base_first = self._ready(question, base_names)
            candidate = self._side(question, first, ALSO)
            base = self._side(question, base_first, BASE_ALSO)
            targets = [*candidate, *base]
            state, traces = self._open(view, targets)
            if traces is None:
                return Answer(view.slug, *first.names, state, None, base=base_first.names)
            if all(self._targets.find(Names(*each.names)).trace == each.trace for each in targets):
                break  # else a file was read meanwhile, and holds several ranks
        pair = TracePair(traces[len(candidate) :], traces[: len(candidate)], _one_run([*base, *candidate]))
        payload = encode(view.build(pair, params))
        return Answer(view.slug, *first.names, state, payload, base=base_first.names)

    def _base(self, question: Question, first: Target) -> Names | None:
        """What is compared with; None while that cannot be told yet."""
        named = Names(*(question.params.get(name) for name in BASE))
        return base_of(self._files, self._targets, first) if named == Names() else named

    def _open(self, view: View, targets: list[Target]) -> tuple[FileState, list[Trace] | None]:
        """The traces, and the state of the last; None and the state of the one that is not there yet."""
        traces: list[Trace] = []
        for target in targets:
            check_available(view, self._files.summary(target.file.id), target)
            state, trace = self._files.open(target.file.id, target.part)
            if trace is None:
                return state, None
            traces.append(trace)
        return state, traces

    def _ready(self, question: Question, names: Names) -> Target:
        return self._targets.ready(names, question.wait, question.timeout)

    def _side(self, question: Question, first: Target, parameter: str) -> list[Target]:
        """All recordings of a side."""
        further = _further(parameter, question.params.get(parameter))
        side = [first, *(self._ready(question, names) for names in further)]
        if len({target.names for target in side}) < len(side):
            raise UsageError(f"parameter {parameter!r} names a recording of its side twice")
        return side


def _further(parameter: str, text: str | None) -> list[Names]:
    """The recordings that a side has beside its first."""
    if text is None:
        return []
    try:
        listed = msgspec.json.decode(text, type=list[tuple[str, str | None, str | None]])
    except msgspec.DecodeError as error:
        hint = 'a JSON list such as [["run", "worker", "2"]]'
        raise UsageError(f"parameter {parameter!r} cannot be {text!r}", hint=hint) from error
    return [Names(*names) for names in listed]


def _one_run(targets: list[Target]) -> bool:
    """Whether all are spans of one worker: its files lie in one folder."""
    workers = {
        (posixpath.dirname(target.file.id.uri), target.worker.name, target.worker.rank) for target in targets
    }
    return len(workers) == 1
