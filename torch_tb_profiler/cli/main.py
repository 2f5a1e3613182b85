"""The command line: the same numbers without a browser.

Payloads go to stdout, messages to stderr. Exit codes: 0 done, 1 trouble with a trace, 2 wrong usage,
3 a regression, 4 it cannot be told whether there is one (`diff`).
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from typing import Any

from torch_tb_profiler.base.errors import ProfilerError, UsageError
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.cli import check, completion, diff, mcp, overlap_report, report, serve, summary, view
from torch_tb_profiler.cli import list as list_command
from torch_tb_profiler.cli import slice as slice_command
from torch_tb_profiler.cli._command import OK, TROUBLE, USAGE, Command
from torch_tb_profiler.cli._print.table import emphasized

PROGRAM = "torch-tb-profiler"

COMMANDS: tuple[Command, ...] = (
    list_command.COMMAND,
    summary.COMMAND,
    view.COMMAND,
    slice_command.COMMAND,
    diff.COMMAND,
    report.COMMAND,
    overlap_report.COMMAND,
    check.COMMAND,
    mcp.COMMAND,
    serve.COMMAND,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    parser = _parser()
    options = parser.parse_args(_given(sys.argv[1:] if arguments is None else arguments))
    if options.run is None:
        parser.print_help(sys.stderr)
        return USAGE
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


def _given(arguments: Sequence[str]) -> list[str]:
    """argparse drops a `--`, but in `diff A1 A2 -- B1 B2` it stands between the sides."""
    if arguments[:1] != [diff.COMMAND.name]:
        return [*arguments]
    return [diff.BETWEEN if argument == "--" else argument for argument in arguments]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="See where the time and memory of a PyTorch model go, from torch.profiler traces.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    parser.set_defaults(run=None)
    commands = parser.add_subparsers(metavar="COMMAND")
    for command in (*COMMANDS, completion.command(_parser)):
        subparser = commands.add_parser(command.name, help=command.summary, description=command.summary)
        subparser.set_defaults(run=command.run)
        command.add_arguments(subparser)
    return parser


class _Version(argparse.Action):
    """Reads the installed version only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *given: Any) -> None:
        from importlib.metadata import version

        sys.stdout.write(f"{PROGRAM} {version(PROGRAM)}\n")
        parser.exit()


def _report(error: ProfilerError) -> None:
    where = f"{error.where}: " if error.where else ""
    sys.stderr.write(f"{emphasized('error:', sys.stderr, '31')} {where}{error.message}\n")
    if error.hint:
        sys.stderr.write(f"hint: {error.hint}\n")
