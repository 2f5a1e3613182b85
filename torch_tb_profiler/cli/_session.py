"""A session for one command: opened on a path, and asked until a file is ready."""

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

BAR = 20
"""Characters of a full progress bar."""


def open_session(path: str | list[Root], settings: Settings) -> Session:
    """A session over a path (or several), listed, which reads in this process; ProfilerError if it cannot be.

    So a file costs no second start of Python, and what is asked of its trace need not be handed over.
    """
    from torch_tb_profiler.session import open_session

    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy would start a spinning thread per core for nothing
    return open_session(path, settings, own_process=True)


def other_files(catalog: Catalog) -> list[dict[str, str]]:
    """The files of other tools, each with what it is and what to do with it."""
    return [
        {"file": file.path, "kind": each.kind, "advice": each.advice}
        for each in catalog.others
        for file in each.files
    ]


def say_others(catalog: Catalog) -> None:
    """Say on stderr how many files of other tools there are, if any."""
    if catalog.others_headline is not None:
        sys.stderr.write(f"note: {catalog.others_headline}\n")


def run_name(names: list[str], side: str, wanted: str | None, path: str) -> str:
    """The run of a side, by default the first. With two roots, names of runs begin with the name of their root."""
    of_side = [name for name in names if name == side or name.startswith(f"{side}/")]
    if not of_side:
        raise ProfilerError("there is no trace", where=path)
    if wanted is None:
        return of_side[0]
    full = f"{side}/{wanted}"
    if full not in of_side:
        known = ", ".join(name.removeprefix(f"{side}/") for name in of_side)
        raise NotFoundError(f"there is no run {wanted!r}", where=path, hint=f"runs: {known}")
    return full


def wait_for_answer(ask: Callable[[], tuple[FileState, T | None]]) -> T:
    """Ask until a file is ready, with a line of progress on a terminal; ProfilerError if it failed."""
    from torch_tb_profiler.session.state import wait_for_answer

    with ProgressLine() as line:
        return wait_for_answer(ask, line.show)


class ProgressLine:
    """A bar that says how far the reading is, from the second second on, on a terminal."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._shown = False

    def show(self, state: FileState) -> None:
        progress = state.progress
        if progress is None or time.monotonic() - self._began < 1 or not sys.stderr.isatty():
            return
        share = min(progress.bytes_done / progress.bytes_total, 1.0) if progress.bytes_total else None
        bar = "" if share is None else f"[{'#' * round(BAR * share):{BAR}}] {share:.0%} "
        sys.stderr.write(f"\r\033[K{bar}{progress.stage}, {progress.events:,} events")
        sys.stderr.flush()
        self._shown = True

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *error: object) -> None:
        if self._shown:
            sys.stderr.write("\r\033[K")
