"""What a summary is built from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

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
