"""All workers of a run at one span, as a summary asks them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.session import FileState, Session
from torch_tb_profiler.session.state import POLL_SECONDS, wait_for_answer
from torch_tb_profiler.views import find_view


class RunSpan:
    """A run at a span, all its files read or failed; NotFoundError for an unknown run or span.

    show  called while a file is read
    """

    def __init__(
        self,
        session: Session,
        run: str | None = None,
        span: str | None = None,
        show: Callable[[FileState], None] = lambda _: None,
    ) -> None:
        chosen = session.catalog.run(run)
        spans = [each for worker in chosen.workers for each in worker.spans]
        self.run = chosen.name
        self.span = span or spans[0].name
        self._session = session
        files = [each for each in spans if each.name == self.span]
        if not files:
            known = ", ".join(dict.fromkeys(each.name for each in spans))
            raise NotFoundError(f"there is no span {self.span!r}", hint=f"spans: {known}")
        ids = [session.load(each) for each in files]
        for id_, file in zip(ids, files, strict=True):
            while not session.wait(id_, POLL_SECONDS):
                show(session.state(file))

    @property
    def workers(self) -> Sequence[str]:
        """Those that have the span; of a file of several ranks each."""
        workers = self._session.workers(self._session.catalog.run(self.run))
        return [each.name for each in workers if any(span.name == self.span for span in each.spans)]

    def ask(self, slug: str, worker: str) -> Any:
        """The payload of a view; ProfilerError if there is none."""

        def ask() -> tuple[FileState, bytes | None]:
            answer = self._session.view(slug, self.run, worker, self.span, wait=True, timeout=POLL_SECONDS)
            return answer.state, answer.payload

        return msgspec.json.decode(wait_for_answer(ask), type=find_view(slug).payload)
