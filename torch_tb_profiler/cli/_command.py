"""What a command consists of, and the arguments that several commands share.

The help of a command imports its module, so modules import what a run needs (numpy, the views, a session) only in
the functions that run.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from torch_tb_profiler.base.errors import UsageError

if TYPE_CHECKING:
    from torch_tb_profiler.base.settings import Settings


OK, TROUBLE, USAGE, REGRESSION, INCONCLUSIVE, NOT_COMPARABLE = 0, 1, 2, 3, 4, 5
HANG = 3
"""Exit codes."""

FORMATS = ("json", "table", "csv", "tsv")

PATH_HELP = "a log folder, a URL, or a trace file"


class Command:
    """A subcommand of the program.

    add_arguments  adds its arguments to a parser
    run            does the work and returns the exit code; raises ProfilerError if it can't
    """

    def __init__(
        self,
        add_arguments: Callable[[argparse.ArgumentParser], None],
        run: Callable[[argparse.Namespace, Settings], int],
    ) -> None:
        self.add_arguments = add_arguments
        self.run = run


def add_path(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", help=PATH_HELP)


def add_format(parser: argparse.ArgumentParser, default: str) -> None:
    """Add `--format`, and what its tables show."""
    parser.add_argument("--format", choices=FORMATS, default=default, help=f"output format; default: {default}")
    parser.add_argument("--columns", metavar="A,B,...", help="show only these columns, in this order")
    parser.add_argument(
        "--sort",
        metavar="COLUMN",
        help="sort by this column, numbers from the largest; append :asc or :desc (--sort=-COLUMN: descending)",
    )
    add_table_size(parser)


def check_table_options(options: argparse.Namespace) -> None:
    """Raise UsageError if options of `add_format` shape a table that its format doesn't print."""
    if options.format == "json" and (options.columns or options.sort or options.limit is not None):
        raise UsageError("--columns, --sort and --limit shape tables", hint="add --format table, csv or tsv")


def _row_count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of rows")
    return int(text)


def add_table_size(parser: argparse.ArgumentParser) -> None:
    """Add `--limit` and `--wide`."""
    parser.add_argument(
        "--limit",
        type=_row_count,
        metavar="N",
        help="show at most N rows of a table; 0 shows all (the default in a pipe)",
    )
    parser.add_argument(
        "--wide",
        action="store_true",
        help="show all columns and full names, even if lines get wider than the terminal",
    )


def add_selection(parser: argparse.ArgumentParser, where: str = "") -> None:
    """Add the options that select one trace, `where` of several; `selection` reads them."""
    for name in ("run", "worker", "span"):
        parser.add_argument(
            f"--{name}",
            dest=f"select_{name}",
            metavar=name.upper(),
            help=f"name of the {name}{where}; default: the first",
        )


def selection(options: argparse.Namespace) -> tuple[str | None, str | None, str | None]:
    """Return (run, worker, span) as the options select them; None means the first."""
    return options.select_run, options.select_worker, options.select_span
