"""What the stream of a command can show: how wide its lines are, and whether it shows styles."""

from __future__ import annotations

import os
from typing import TextIO


def terminal_width(stream: TextIO) -> int | None:
    """Return the characters in a line of `stream`, or None if it's a pipe or a file."""
    if not stream.isatty():
        return None
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):
        return None


def terminal_height(stream: TextIO) -> int | None:
    """Return the lines of the terminal that `stream` writes to, or None if it's a pipe or a file."""
    try:
        return os.get_terminal_size(stream.fileno()).lines or None
    except (OSError, ValueError):
        return None


def shows_styles(stream: TextIO) -> bool:
    """Return whether `stream` is a terminal that shows bold and colors, and NO_COLOR isn't set (https://no-color.org)."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return not plain and stream.isatty()


def emphasize(text: str, stream: TextIO, code: str = "1") -> str:
    """Return `text` in bold (or red, "31") where `stream` shows styles."""
    return f"\033[{code}m{text}\033[0m" if shows_styles(stream) else text
