"""Views of one trace."""

from __future__ import annotations

from typing import Any

import msgspec

from torch_tb_profiler.session.answers.answer import Answer, Question, check_available
from torch_tb_profiler.session.files import Files
from torch_tb_profiler.session.kept.summary import encode
from torch_tb_profiler.session.state import FileState
from torch_tb_profiler.session.targets import Target, Targets
from torch_tb_profiler.view import TraceView, parse_params

ATTEMPTS = 5
"""How often a trace that others drop from a cache too small for all is loaded for one question."""


class TraceAnswers:
    def __init__(self, files: Files, targets: Targets) -> None:
        self._files = files
        self._targets = targets

    def answer(self, view: TraceView[Any, Any], question: Question) -> Answer:
        params = parse_params(view.params, question.params)
        target = self._targets.ready(question.names, question.wait, question.timeout)
        attempts = ATTEMPTS if question.wait else 0
        state, payload = self.payload(view, params, target, question.wait)
        while payload is None and attempts and state.state != "failed" and self._wait(target, question):
            target = self._targets.find(question.names)
            state, payload = self.payload(view, params, target, question.wait)
            attempts -= 1
        while payload is not None and (now := self._targets.find(question.names)).trace != target.trace:
            target = now  # its file was read meanwhile, and holds several ranks
            state, payload = self.payload(view, params, target, question.wait)
        return Answer(view.slug, *target.names, state, payload)

    def _wait(self, target: Target, question: Question) -> bool:
        return self._files.wait(target.file.id, question.timeout)

    def payload(
        self, view: TraceView[Any, Any], params: msgspec.Struct, target: Target, wait: bool
    ) -> tuple[FileState, bytes | None]:
        """What a view answers of one trace; None while that is loading, or if it has failed.

        wait  who asks does not ask again: what a worker is making ahead is made here, too
        """
        id_ = target.file.id
        check_available(view, self._files.summary(id_), target)
        keeps = view.kept != "never" and params == view.params()
        if keeps:
            kept = self._files.result(id_, view.slug, target.part)
            if kept is not None:
                self._files.answer_ahead(id_, target.part)
                return self._files.state(id_), kept
        made = None if view.first is None else self._files.answer_to(id_, view.slug, target.part, params)
        if made is not None:
            return self._files.state(id_), made
        if keeps and not wait and self._files.making(id_, view.slug, target.part):
            return FileState("loading"), None
        state, trace = self._files.open(id_, target.part)
        if trace is None:
            return state, None
        if view.columns is not None:
            self._files.restore(id_, target.part, view, trace)
        payload = encode(view.build(trace, params))
        if keeps and view.kept == "asked":
            self._files.keep(id_, view.slug, target.part, payload)
        self._files.answer_ahead(id_, target.part)
        return state, payload
