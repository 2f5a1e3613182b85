"""Prepare the other tabs of a large trace in the background, once a command has shown one of them.

    torch-tb-profiler view overview log     reads the trace, prints, and ends
        a process of its own                builds the first answers of the other tabs from the cached trace
    torch-tb-profiler view kernels log      prints what the cache has

That process outlives the command and has a low priority. One runs at a time per cache: a command that finds
another one at work leaves its tabs to the next command, which builds what it shows.
"""

from __future__ import annotations

import logging
import os
import sys

from torch_tb_profiler.base.settings import Settings

logger = logging.getLogger(__name__)

VARIABLE = "TORCH_PROFILER_BACKGROUND"
"""Environment variable: 0 prepares nothing."""

LOCK_FILE = "background.lock"
"""File in the folder of the cache that the process holds a lock on."""

_NICENESS = 10
"""What the user does meanwhile goes first."""


def prepare_in_background(path: str, names: tuple[str | None, str | None, str | None]) -> None:
    """Start a process that prepares the tabs of a trace (run, worker, span), and return at once."""
    if os.name != "posix" or os.environ.get(VARIABLE) == "0":
        return
    # Modules are found where this process finds them, not in the working folder, which may hold anybody's files.
    code = (
        f"import sys; sys.path[:] = {sys.path!r}; "
        f"from torch_tb_profiler.cli import _background; _background.prepare({path!r}, {names!r})"
    )
    silent = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
    try:
        os.posix_spawn(sys.executable, [sys.executable, "-c", code], os.environ, file_actions=silent)
    except OSError as error:
        logger.warning("the other tabs can't be prepared in the background: %s", error)


def prepare(path: str, names: tuple[str | None, str | None, str | None]) -> None:
    """Build and cache the first answers of a trace's tabs, unless another process prepares any."""
    import fcntl

    os.setsid()  # Ctrl-C in the terminal is meant for later commands
    os.nice(_NICENESS)
    from torch_tb_profiler.base.memory import limit_memory
    from torch_tb_profiler.cache import Cache
    from torch_tb_profiler.cli._session import open_cli_session
    from torch_tb_profiler.session.loading import worker_memory

    settings = Settings.from_environment()
    with open(os.path.join(Cache.from_settings(settings).place, LOCK_FILE), "ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        limit_memory(worker_memory(settings))
        with open_cli_session(path, settings) as session:
            session.build_answers(*names)
