"""What a command is, and the arguments that several commands share.

The help of a command imports its module, which imports what a run needs (numpy, the views, a session) only once
it runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from torch_tb_profiler.base.settings import Settings


OK, TROUBLE, USAGE, REGRESSION, CANNOT_TELL = 0, 1, 2, 3, 4
"""Exit codes."""

FORMATS = ("json", "table", "csv")

PATH = "a log folder, a URL, or one trace file"


class Command(NamedTuple):
    """What stands behind one word after the program's name.

    run  does the work and returns the exit code; ProfilerError if it cannot
    """

    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace, Settings], int]


def add_path(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", help=PATH)


def add_format(parser: argparse.ArgumentParser, default: str) -> None:
    """`--format`, and `--wide` for its tables."""
    parser.add_argument("--format", choices=FORMATS, default=default)
    add_wide(parser)


def add_wide(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--wide", action="store_true", help="all columns and whole names in a terminal")


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Options that choose one trace; see `selection`."""
    for name in ("run", "worker", "span"):
        parser.add_argument(f"--{name}", dest=f"select_{name}", metavar=name.upper(), help="default: the first")


def selection(options: argparse.Namespace) -> tuple[str | None, str | None, str | None]:
    """(run, worker, span) as given; None is the first."""
    return options.select_run, options.select_worker, options.select_span
