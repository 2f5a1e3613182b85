"""The session of one command: opening it, waiting for answers, and showing progress."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from torch_tb_profiler.base.errors import NotFoundError, ProfilerError
from torch_tb_profiler.base.settings import Settings

if TYPE_CHECKING:
    from torch_tb_profiler.discovery import Catalog
    from torch_tb_profiler.session import FileState, Root, Session

T = TypeVar("T")

BAR_WIDTH = 20
"""Characters of a full progress bar."""

BAR_DELAY_S = 1
"""Seconds of reading before the progress bar appears."""


def open_session(path: str | list[Root], settings: Settings) -> Session:
    """Open a session on one or more paths and list their runs; raise ProfilerError if they can't be listed.

    It parses files in this process: a second Python would have to start first and hand the trace over.
    """
    from torch_tb_profiler.session import open_session

    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy would start an idle, spinning thread per core
    return open_session(path, settings, own_process=True)


def other_files(catalog: Catalog) -> list[dict[str, str]]:
    """Return the files of other tools, each with its kind and what to do with it."""
    return [
        {"file": file.path, "kind": each.kind, "advice": each.advice}
        for each in catalog.others
        for file in each.files
    ]


def print_other_files_note(catalog: Catalog) -> None:
    """Print to stderr how many files of other tools there are, if any."""
    if catalog.others_headline is not None:
        sys.stderr.write(f"note: {catalog.others_headline}\n")


def find_run_name(names: list[str], side: str, requested: str | None, path: str) -> str:
    """Return the name of the `requested` run of a side, or of its first run if None.

    With two roots, the names of runs begin with the name of their root (`side`). Raises ProfilerError if the side
    has no runs, NotFoundError if it doesn't have this one.
    """
    of_side = [name for name in names if name == side or name.startswith(f"{side}/")]
    if not of_side:
        raise ProfilerError("there is no trace", where=path)
    if requested is None:
        return of_side[0]
    full = f"{side}/{requested}"
    if full not in of_side:
        available = ", ".join(name.removeprefix(f"{side}/") for name in of_side)
        raise NotFoundError(f"there is no run {requested!r}", where=path, hint=f"runs: {available}")
    return full


def wait_for_answer(ask: Callable[[], tuple[FileState, T | None]]) -> T:
    """Call `ask` until it returns an answer, with a progress bar on a terminal; raise ProfilerError on failure."""
    from torch_tb_profiler.session.state import wait_for_answer

    with ProgressLine() as line:
        return wait_for_answer(ask, line.show)


class ProgressLine:
    """A progress bar on stderr; it appears after `BAR_DELAY_S`, and only on a terminal."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._shown = False

    def show(self, state: FileState) -> None:
        progress = state.progress
        if progress is None or time.monotonic() - self._started < BAR_DELAY_S or not sys.stderr.isatty():
            return
        share = min(progress.bytes_done / progress.bytes_total, 1.0) if progress.bytes_total else None
        bar = "" if share is None else f"[{'#' * round(BAR_WIDTH * share):{BAR_WIDTH}}] {share:.0%} "
        sys.stderr.write(f"\r\033[K{bar}{progress.stage}, {progress.events:,} events")
        sys.stderr.flush()
        self._shown = True

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *error: object) -> None:
        if self._shown:
            sys.stderr.write("\r\033[K")
