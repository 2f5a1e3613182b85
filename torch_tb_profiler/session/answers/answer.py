"""The request for a view and its answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.discovery import ListedRun
from torch_tb_profiler.session.cache.entries import FileSummary
from torch_tb_profiler.session.state import FileState
from torch_tb_profiler.session.targets import RequestedNames, Target, TargetNames
from torch_tb_profiler.views import SLUGS, views_of

if TYPE_CHECKING:
    from torch_tb_profiler.view import View


class ViewRequest(msgspec.Struct, frozen=True):
    """The names and parameters of a request; with `wait`, it waits for the files, up to `timeout` seconds."""

    names: RequestedNames
    params: Mapping[str, str]
    wait: bool
    timeout: float | None


class Answer(msgspec.Struct, frozen=True):
    """The payload of a view as JSON, or the state of the file while there is none.

    loading  number of files that the payload does not include yet, or not all of
    base     the trace that a view of a pair compares with
    """

    view: str
    run: str
    worker: str
    span: str
    state: FileState
    payload: bytes | None
    loading: int = 0
    base: TargetNames | None = None


def unavailable_reasons(summary: FileSummary, run: ListedRun) -> Mapping[str, str]:
    """Return view slug -> why a trace has nothing to show there.

    If the run has memory files or flight recorder dumps, the tab that opens them is always available.
    """
    if not run.memory_files and not run.dumps:
        return summary.unavailable
    return {slug: reason for slug, reason in summary.unavailable.items() if not _opens_files(slug, run)}


def unavailable_without_trace(run: ListedRun) -> Mapping[str, str]:
    """Return view slug -> why a run with dumps and no trace has nothing to show there."""
    return {
        slug: "the run has no trace, only flight recorder dumps" for slug in SLUGS if not _opens_files(slug, run)
    }


def _opens_files(tab: str, run: ListedRun) -> bool:
    from torch_tb_profiler.view import DumpsView, FileView

    kinds = (*((FileView,) if run.memory_files else ()), *((DumpsView,) if run.dumps else ()))
    return any(isinstance(view, kinds) for view in views_of(tab))


def check_available(view: View, summary: FileSummary | None, target: Target) -> None:
    """Raise NotFoundError with the reason if a loaded trace has nothing to show in a view."""
    reason = unavailable_reasons(summary, target.run).get(view.tab) if summary is not None else None
    if reason is not None:
        raise NotFoundError(reason, where=target.file.path)
