"""The session of one command: opening it, waiting for answers, and showing progress."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from threading import Lock, Timer
from typing import TYPE_CHECKING, TypeVar

from torch_tb_profiler.base.errors import NotFoundError, ProfilerError
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.cli._styles import shows_styles

if TYPE_CHECKING:
    from rich.progress import Progress

    from torch_tb_profiler.discovery import Catalog
    from torch_tb_profiler.session import FileState, Root, Session

T = TypeVar("T")

BAR_WIDTH = 20
"""Characters of a full progress bar."""

BAR_DELAY_S = 1
"""Seconds of reading before the progress bar appears."""


def open_cli_session(path: str | list[Root], settings: Settings) -> Session:
    """Open a session on one or more paths and list their runs; raise ProfilerError if they can't be listed.

    It parses files in this process: a second Python would have to start first and hand the trace over.
    """
    from torch_tb_profiler.session import open_session

    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy would start an idle, spinning thread per core
    return open_session(path, settings, own_process=True)


def other_file_rows(catalog: Catalog) -> list[dict[str, str]]:
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


def wait_with_progress(ask: Callable[[], tuple[FileState, T | None]]) -> T:
    """Call `ask` until it returns an answer, with a progress bar on a terminal; raise ProfilerError on failure."""
    from torch_tb_profiler.session.state import wait_for_answer

    with ProgressLine() as line:
        return wait_for_answer(ask, line.show)


class ProgressLine:
    """A progress bar on stderr: it appears after `BAR_DELAY_S`, only on a terminal, and disappears at the end."""

    def __init__(self) -> None:
        self._state: FileState | None = None
        self._progress: Progress | None = None
        self._lock = Lock()
        self._timer = Timer(BAR_DELAY_S, self._appear)
        self._timer.daemon = True

    def show(self, state: FileState) -> None:
        """Show what is done of reading a file, or that an answer is computed where no file is read."""
        with self._lock:
            self._state = state
            if self._progress is not None:
                self._update(self._progress)

    def _appear(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn

        with self._lock:
            if self._timer.finished.is_set():
                return
            console = Console(file=sys.stderr, color_system="auto" if shows_styles(sys.stderr) else None)
            columns = (
                SpinnerColumn(),
                BarColumn(BAR_WIDTH),
                TaskProgressColumn(),
                TextColumn("{task.description}"),
            )
            self._progress = Progress(*columns, console=console, transient=True)
            self._progress.add_task("computing", total=None)
            self._update(self._progress)
            self._progress.start()

    def _update(self, progress: Progress) -> None:
        done = self._state.progress if self._state else None
        task = progress.task_ids[0]
        if done is None:
            progress.update(task, description="computing", total=None)
        else:
            text = f"{done.stage}, {done.events:,} events"
            progress.update(task, description=text, completed=done.bytes_done, total=done.bytes_total or None)

    def __enter__(self) -> ProgressLine:
        if sys.stderr.isatty():
            self._timer.start()
        return self

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._timer.cancel()
        if self._progress is not None:
            self._progress.stop()
