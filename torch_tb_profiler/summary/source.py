"""What a summary is built from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from torch_tb_profiler.base.errors import ProfilerError
from torch_tb_profiler.views.hangs.payload import HangsPayload


class SummarySource(Protocol):
    """A run at one span, with the answers of its workers."""

    @property
    def run(self) -> str: ...
    @property
    def span(self) -> str: ...
    @property
    def workers(self) -> Sequence[str]: ...
    @property
    def hang(self) -> HangsPayload | None:
        """Return the answer of the Hangs tab, None if the run has no flight recorder dumps."""
        ...

    def answer(self, slug: str, worker: str) -> Any:
        """Return the payload of a view; raise ProfilerError if it has nothing to show or can't be read."""
        ...


def collect_answers(
    source: SummarySource, slug: str, workers: Sequence[str]
) -> tuple[dict[str, Any], dict[str, ProfilerError]]:
    """Return the answers of a view by worker, and by worker the errors of those that have none."""
    answers: dict[str, Any] = {}
    errors: dict[str, ProfilerError] = {}
    for worker in workers:
        try:
            answers[worker] = source.answer(slug, worker)
        except ProfilerError as error:
            errors[worker] = error
    return answers, errors
