"""A run at a span: the first one where none is named, and its files waited for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.page import draw_training
from torch_tb_profiler.api.log import WorkerAnswers
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.session import FileState, Session, open_session


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    for worker in ("one", "two"):
        for at in (1, 2):
            (tmp_path / f"{worker}.170000000000{at}.pt.trace.json").write_bytes(draw_training(2))
    with open_session(str(tmp_path)) as session:
        yield session


def test_without_a_name_it_is_the_first_span(session: Session) -> None:
    spans = [each.name for each in session.catalog.run(None).workers[0].spans]
    assert len(spans) == 2
    assert WorkerAnswers(session).span == spans[0]
    assert WorkerAnswers(session, span=spans[1]).span == spans[1]
    assert list(WorkerAnswers(session).workers) == ["one", "two"]
    with pytest.raises(NotFoundError, match="no span 'none'"):
        WorkerAnswers(session, span="none")


def test_files_are_shown_until_they_are_ready_and_never_after(session: Session) -> None:
    def show(state: FileState) -> None:
        assert state.state in ("waiting", "loading")

    WorkerAnswers(session, show=show)
    for worker in session.catalog.run(None).workers:
        assert session.state(worker.spans[0]).state == "ready"
