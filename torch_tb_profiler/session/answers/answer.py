"""What is asked of a view, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.discovery import Run
from torch_tb_profiler.session.kept.summary import FileSummary
from torch_tb_profiler.session.state import FileState
from torch_tb_profiler.session.targets import FullNames, Names, Target
from torch_tb_profiler.views import views_of

if TYPE_CHECKING:
    from torch_tb_profiler.view import View


class Question(NamedTuple):
    """The names and parameters of a request; `wait` for the files, at most `timeout` seconds."""

    names: Names
    params: Mapping[str, str]
    wait: bool
    timeout: float | None


@dataclass(frozen=True)
class Answer:
    """A view's payload as JSON, or the state of the file while there is none yet.

    loading  how many files are still to come into the payload of a view of a run
    base     what the view of a pair compares with
    """

    view: str
    run: str
    worker: str
    span: str
    state: FileState
    payload: bytes | None
    loading: int = 0
    base: FullNames | None = None


def unavailable(summary: FileSummary, run: Run) -> Mapping[str, str]:
    """View slug -> why a trace has nothing to show there. A tab that opens the run's other files always has."""
    if not run.memory_files:
        return summary.unavailable
    return {slug: reason for slug, reason in summary.unavailable.items() if not _opens_files(slug)}


def _opens_files(tab: str) -> bool:
    from torch_tb_profiler.view import FileView

    return any(isinstance(view, FileView) for view in views_of(tab))


def check_available(view: View, summary: FileSummary | None, target: Target) -> None:
    """NotFoundError with the reason if it is known that a trace has nothing to show."""
    reason = unavailable(summary, target.run).get(view.tab) if summary is not None else None
    if reason is not None:
        raise NotFoundError(reason, where=target.file.path)
