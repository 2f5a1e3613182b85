"""`torch-tb-profiler diff A B`: two traces compared, and a gate for continuous integration."""

from __future__ import annotations

import argparse

from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.cli._command import PATH, Command, add_selection

FORMATS = ("table", "json", "markdown", "junit")


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("base", metavar="A", help=f"the base: {PATH}")
    parser.add_argument("candidate", metavar="B", help=f"what is compared with it: {PATH}")
    for name in ("run", "worker", "span"):
        parser.add_argument(f"--base-{name}", metavar=name.upper(), help=f"of A; default: the first {name}")
    add_selection(parser)
    parser.add_argument("--format", choices=FORMATS, default="table")
    parser.add_argument(
        "--fail-over",
        metavar="PERCENT",
        type=_percent,
        help="exit with 3 if a significant slowdown of the step or an operator exceeds this share of A's step",
    )
    parser.add_argument("--budget", metavar="FILE", help="exit with 3 if B exceeds a limit in this JSON file")
    parser.add_argument(
        "--min-effect",
        metavar="PERCENT",
        type=_percent,
        default=0.02,
        help="smallest change that counts; default: 2",
    )


def _percent(text: str) -> float:
    value = float(text.removesuffix("%"))
    if not 0 <= value <= 1000:
        raise ValueError(text)
    return value / 100


def _run(options: argparse.Namespace, settings: Settings) -> int:
    from torch_tb_profiler.cli.diff._run import run

    return run(options, settings)


COMMAND = Command("diff", "compare two traces: what changed, and whether it is significant", _add_arguments, _run)
