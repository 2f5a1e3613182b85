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
from torch_tb_profiler.session.targets import Names, Target, Targets
from torch_tb_profiler.view import ALSO, BASE, BASE_ALSO, OF_PAIR, PairView, parse_params

if TYPE_CHECKING:
    from torch_tb_profiler.model.trace import Trace


class PairAnswers:
    def __init__(self, files: Files, targets: Targets) -> None:
        self._files = files
        self._targets = targets

    def answer(self, view: PairView[Any, Any], question: Question) -> Answer:
        from torch_tb_profiler.model.pair import Pair

        own = {name: text for name, text in question.params.items() if name not in OF_PAIR}
        params = parse_params(view.params, own)
        first = self._ready(question, question.names)
        named = Names(*(question.params.get(name) for name in BASE))
        if named == Names():
            likely = base_of(self._files, self._targets, first)
            if likely is None:
                return Answer(view.slug, *first.names, self._files.state(first.file.id), None)
            named = likely
        base_first = self._ready(question, named)
        candidate = self._side(question, first, ALSO)
        base = self._side(question, base_first, BASE_ALSO)
        state = self._files.state(first.file.id)
        traces: list[Trace] = []
        for target in (*candidate, *base):
            check_available(view, self._files.summary(target.file.id), target)
            state, trace = self._files.open(target.file.id, target.part)
            if trace is None:
                return Answer(view.slug, *first.names, state, None, base=base_first.names)
            traces.append(trace)
        pair = Pair(traces[len(candidate) :], traces[: len(candidate)], _one_run([*base, *candidate]))
        payload = encode(view.build(pair, params))
        return Answer(view.slug, *first.names, state, payload, base=base_first.names)

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
