"""Show what is longer than the terminal through a pager, as git does."""

from __future__ import annotations

import io
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TextIO

from torch_tb_profiler.cli._styles import terminal_height

_LESS_OPTIONS = "FRX"
"""As git sets them: leave if all fits, draw colors, leave the text on the screen."""


class _TerminalText(io.StringIO):
    """Text for a terminal, with its colors."""

    def isatty(self) -> bool:
        return True


@contextmanager
def paged(stream: TextIO) -> Iterator[TextIO]:
    """Yield where to write what `stream` should show: it goes through a pager if it is longer than the terminal.

    The pager is what PAGER says, or `less`. There is none if PAGER is empty or `cat`, if the terminal is dumb, or
    if stdin isn't a terminal: nobody is there to leave it.
    """
    height, pager = terminal_height(stream), find_pager()
    if height is None or pager is None:
        yield stream
        return
    text = _TerminalText()
    yield text
    if text.getvalue().count("\n") < height:
        stream.write(text.getvalue())
    else:
        _show(text.getvalue(), pager, stream)


def find_pager() -> Sequence[str] | None:
    """Return the command of the pager, or None if nothing is to be paged."""
    if os.environ.get("TERM") == "dumb" or not sys.stdin.isatty():
        return None
    try:
        command = shlex.split(os.environ.get("PAGER", "less"))
    except ValueError:  # a quote that isn't closed
        return None
    return command if command and command != ["cat"] and shutil.which(command[0]) else None


def _show(text: str, pager: Sequence[str], stream: TextIO) -> None:
    stream.flush()
    environment = {"LESS": _LESS_OPTIONS, **os.environ}
    process = subprocess.Popen(
        pager, stdin=subprocess.PIPE, env=environment, text=True, encoding=stream.encoding, errors="replace"
    )
    assert process.stdin is not None
    with suppress(BrokenPipeError), process.stdin as pipe:  # left before it had read everything
        pipe.write(text)
    while True:
        try:
            process.wait()
            return
        except KeyboardInterrupt:
            continue  # for the pager, which got it, too
