"""`torch-tb-profiler diff A B`: two sides compared, and a gate for continuous integration."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from torch_tb_profiler.cli._command import PATH, Command, add_selection, add_wide

if TYPE_CHECKING:
    from torch_tb_profiler.base.settings import Settings

FORMATS = ("table", "json", "markdown", "junit")

BETWEEN = "\0"
"""Stands for the `--` between the recordings of A and those of B; no path can be called so."""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="+",
        help=f"the base A and the candidate B, each {PATH}; several recordings of each: A1 A2 -- B1 B2",
    )
    for name in ("run", "worker", "span"):
        parser.add_argument(f"--base-{name}", metavar=name.upper(), help=f"of A; default: the first {name}")
    add_selection(parser)
    parser.epilog = "--span and --base-span take several spans of one worker as recordings: 1,2,3"
    parser.add_argument("--format", choices=FORMATS, default="table")
    add_wide(parser)
    parser.add_argument(
        "--fail-over",
        metavar="PERCENT",
        type=_percent,
        help="exit with 3 if a proven slowdown of the step or an operator exceeds this share of A's step, with 4 "
        "if the recordings cannot tell whether the step's does",
    )
    parser.add_argument("--strict", action="store_true", help="exit with 3 also where it cannot be told")
    parser.add_argument("--budget", metavar="FILE", help="exit with 3 if B exceeds a limit in this JSON file")
    parser.add_argument(
        "--min-effect",
        metavar="PERCENT",
        type=_percent,
        help="least change that matters; default: 2, or that of --fail-over if it is less",
    )


def _percent(text: str) -> float:
    value = float(text.removesuffix("%"))
    if not 0 <= value <= 1000:
        raise ValueError(text)
    return value / 100


def _run(options: argparse.Namespace, settings: Settings) -> int:
    from torch_tb_profiler.cli.diff._run import run

    return run(options, settings)


COMMAND = Command(_add_arguments, _run)
