"""The command line: the same numbers without a browser.

Payloads go to stdout, messages to stderr. Exit codes: 0 done, 1 trouble with a trace, 2 wrong usage,
3 a regression, 4 it cannot be told whether there is one (`diff`).
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from torch_tb_profiler.base.errors import ProfilerError, UsageError
from torch_tb_profiler.cli._command import OK, TROUBLE, USAGE, Command

PROGRAM = "torch-tb-profiler"

DIFF, COMPLETION = "diff", "completion"

COMMANDS = {
    "list": "list runs, workers and spans",
    "summary": "say what matters of a run, of all its ranks, on one page",
    "view": "print a view of one trace; without arguments, list the views",
    "slice": "write a part of a trace as a trace file of its own",
    DIFF: "compare two sides: what changed, and what that proves",
    "report": "write the page and its answers into one HTML file",
    "overlap-report": "compare the overlap of two folders of iteration metrics",
    "check": "report for each file what can be read and what is wrong with it",
    "mcp": "answer a coding agent over standard input and output",
    "serve": "open TensorBoard on a log folder or one trace file",
    COMPLETION: "print a script that completes commands in a shell",
}
"""Command -> what it does. Each has a module with a `COMMAND`, imported once the command is given."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    _write_utf8()
    given = _given(sys.argv[1:] if arguments is None else arguments)
    parser = _parser(given[0] if given else "")
    options = parser.parse_args(given)
    if options.run is None:
        parser.print_help(sys.stderr)
        return USAGE
    import logging

    from torch_tb_profiler.base.settings import Settings

    logging.basicConfig(stream=sys.stderr, format="%(levelname)s: %(message)s")
    try:
        settings = Settings.from_environment()
        logging.getLogger("torch_tb_profiler").setLevel(settings.log_level.upper())
        code: int = options.run(options, settings)
        sys.stdout.flush()
        return code
    except UsageError as error:
        _report(error)
        return USAGE
    except ProfilerError as error:
        _report(error)
        return TROUBLE
    except BrokenPipeError:
        # The reader (head, less) is gone, and the interpreter flushes stdout once more as it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except KeyboardInterrupt:
        return 130


def _write_utf8() -> None:
    """Units, signs and the names of a trace are beyond the code page that a pipe has on Windows."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.encoding.lower() not in ("utf-8", "utf8"):
        sys.stdout.reconfigure(encoding="utf-8")


def _given(arguments: Sequence[str]) -> list[str]:
    """argparse drops a `--`, but in `diff A1 A2 -- B1 B2` it stands between the sides."""
    if arguments[:1] != [DIFF]:
        return [*arguments]
    from torch_tb_profiler.cli import diff

    return [diff.BETWEEN if argument == "--" else argument for argument in arguments]


def _parser(word: str | None = None) -> argparse.ArgumentParser:
    """The parser of one command, or of all; by any other word they are only named."""
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="See where the time and memory of a PyTorch model go, from torch.profiler traces.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    parser.set_defaults(run=None)
    commands = parser.add_subparsers(metavar="COMMAND")
    for name in (word,) if word in COMMANDS else COMMANDS:
        subparser = commands.add_parser(name, help=COMMANDS[name], description=COMMANDS[name])
        if word in (None, name):
            command = _command(name)
            subparser.set_defaults(run=command.run)
            command.add_arguments(subparser)
    return parser


def _command(name: str) -> Command:
    module = import_module(f"torch_tb_profiler.cli.{name.replace('-', '_')}")
    command: Command = module.command(_parser) if name == COMPLETION else module.COMMAND
    return command


class _Version(argparse.Action):
    """Reads the installed version, and whether the native reader came with it, only when that is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *given: Any) -> None:
        from importlib.metadata import version

        from torch_tb_profiler.ingest.kineto import native

        sys.stdout.write(f"{PROGRAM} {version(PROGRAM)}\nnative reader: {native.state()}\n")
        parser.exit()


def _report(error: ProfilerError) -> None:
    from torch_tb_profiler.cli._print.table import emphasized

    where = f"{error.where}: " if error.where else ""
    sys.stderr.write(f"{emphasized('error:', sys.stderr, '31')} {where}{error.message}\n")
    if error.hint:
        sys.stderr.write(f"hint: {error.hint}\n")
