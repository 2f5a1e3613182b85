"""Views of two traces: a candidate and the base it is compared with."""

from __future__ import annotations

from typing import Any

from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.session.answers.answer import Answer, Question, check_available
from torch_tb_profiler.session.files import Files
from torch_tb_profiler.session.jobs import encode
from torch_tb_profiler.session.targets import Names, Target, Targets
from torch_tb_profiler.view import BASE, PairView, parse_params


class PairAnswers:
    def __init__(self, files: Files, targets: Targets) -> None:
        self._files = files
        self._targets = targets

    def answer(self, view: PairView[Any, Any], question: Question) -> Answer:
        own = {name: text for name, text in question.params.items() if name not in BASE}
        params = parse_params(view.params, own)
        candidate = self._targets.ready(question.names, question.wait, question.timeout)
        base_names = Names(*(question.params.get(name) for name in BASE))
        base = self._targets.ready(self._base(base_names, candidate), question.wait, question.timeout)
        traces: list[Trace] = []
        state = self._files.state(candidate.file.id)
        for target in (candidate, base):
            check_available(view, self._files.summary(target.file.id), target)
            state, trace = self._files.open(target.file.id, target.rank)
            if trace is None:
                return Answer(view.slug, *candidate.names, state, None, base=base.names)
            traces.append(trace)
        payload = encode(view.build(traces[0], traces[1], params))
        return Answer(view.slug, *candidate.names, state, payload, base=base.names)

    def _base(self, named: Names, candidate: Target) -> Names:
        """What is compared with where nothing is named: the same worker and span of the first other run;
        the first other worker, or span, where there is but one run."""
        if named != Names():
            return named
        other = next((run for run in self._targets.runs if run.name != candidate.run.name), None)
        if other is not None:
            workers = {worker.name: worker for worker in self._targets.workers(other)}
            worker = workers.get(candidate.worker.name)
            spans = {span.name for span in worker.spans} if worker is not None else set()
            span = candidate.span.name if candidate.span.name in spans else None
            return Names(other.name, worker.name if worker is not None else None, span)
        for sibling in self._targets.workers(candidate.run):
            for each in sibling.spans:
                names = Names(candidate.run.name, sibling.name, each.name)
                if tuple(names) != tuple(candidate.names):
                    return names
        raise NotFoundError("there is only one trace", hint="put a second run into the log folder to compare with")
