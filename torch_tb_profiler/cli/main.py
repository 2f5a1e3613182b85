"""The command line: the numbers of the page without a browser.

Payloads go to stdout, messages to stderr. Exit codes: 0 success, 1 trouble with a trace, 2 wrong usage; `diff`
also returns 3 for a regression and 4 if it is inconclusive, and `view hangs --fail-on-hang` 3 for a hang.
"""

from __future__ import annotations

import argparse
import atexit
import gc
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

from torch_tb_profiler.base.errors import ProfilerError, UsageError
from torch_tb_profiler.cli._command import OK, TROUBLE, USAGE, Command

PROGRAM = "torch-tb-profiler"

DIFF, COMPLETION = "diff", "completion"

COMMANDS = {
    "list": "list the runs, workers and spans of a log folder",
    "summary": "summarize a run, all its ranks, on one page",
    "view": "print a view of a trace; without arguments, list the views",
    "slice": "write part of a trace to a new trace file",
    DIFF: "compare two runs: what changed, and is it significant",
    "report": "write a report: one HTML file that needs no server",
    "overlap-report": "report the overlap in folders of iteration metrics",
    "check": "check that each file can be read, and list its problems",
    "mcp": "serve the tools for a coding agent (MCP) over standard input and output",
    "serve": "open TensorBoard on a log folder or a trace file",
    COMPLETION: "print the completion script for a shell",
}
"""Command -> its help. Each has a module with a `COMMAND`, imported only when the command is used."""

_OBJECTS_PER_COLLECTION = 100_000
"""Objects that are made between two searches of the garbage collector; importing all modules makes 85,000."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that `arguments` (default: sys.argv) name; return the exit code."""
    _use_utf8()
    _spare_collector()
    words = _with_side_separator(sys.argv[1:] if arguments is None else arguments)
    parser = _build_parser(words[0] if words else "")
    options = parser.parse_args(words)
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
        _print_error(error)
        return USAGE
    except ProfilerError as error:
        _print_error(error)
        return TROUBLE
    except BrokenPipeError:
        # The reader (head, less) has exited, and Python flushes stdout once more at its own exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except KeyboardInterrupt:
        return 130


def run() -> NoReturn:
    """Run the command that sys.argv names as the program that the process is.

    The process ends without freeing each module and each array, which takes 2 to 5% of a command: the system takes
    all memory back at once.
    """
    codes: list[int] = []

    @atexit.register  # the first that is registered is called last, when all threads have ended
    def end() -> None:
        if codes:  # otherwise an exception ends the process, and Python reports it
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(codes[0])

    codes.append(main())
    sys.exit(codes[0])


def _spare_collector() -> None:
    """Search for garbage rarely: modules stay until the end, when the system takes all memory back at once."""
    gc.set_threshold(_OBJECTS_PER_COLLECTION)
    atexit.register(gc.freeze)


def _use_utf8() -> None:
    """Print UTF-8: the code page of a pipe on Windows has no µ, and not all names of a trace."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.encoding.lower() not in ("utf-8", "utf8"):
        sys.stdout.reconfigure(encoding="utf-8")


def _with_side_separator(arguments: Sequence[str]) -> list[str]:
    """Replace the `--` of `diff A1 A2 -- B1 B2`, which argparse would drop."""
    if arguments[:1] != [DIFF]:
        return [*arguments]
    from torch_tb_profiler.cli import diff

    return [diff.SIDE_SEPARATOR if argument == "--" else argument for argument in arguments]


def _build_parser(name: str | None = None) -> argparse.ArgumentParser:
    """Build the parser of the command `name`, or of all commands if None.

    Any other name gives a parser that only lists the commands, without importing them.
    """
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="See where a PyTorch model spends time and memory, from torch.profiler traces.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    parser.set_defaults(run=None)
    commands = parser.add_subparsers(metavar="COMMAND", prog=PROGRAM)
    for each in (name,) if name in COMMANDS else COMMANDS:
        subparser = commands.add_parser(each, help=COMMANDS[each], description=COMMANDS[each])
        if name in (None, each):
            command = _import_command(each)
            subparser.set_defaults(run=command.run)
            command.add_arguments(subparser)
    return parser


def _import_command(name: str) -> Command:
    module = import_module(f"torch_tb_profiler.cli.{name.replace('-', '_')}")
    command: Command = module.command(_build_parser) if name == COMPLETION else module.COMMAND
    return command


class _Version(argparse.Action):
    """Prints the installed version and the state of the native reader, which are read only for `--version`."""

    def __call__(self, parser: argparse.ArgumentParser, *values: Any) -> None:
        from importlib.metadata import version

        from torch_tb_profiler.ingest.kineto import native

        sys.stdout.write(f"{PROGRAM} {version(PROGRAM)}\nnative reader: {native.describe_state()}\n")
        parser.exit()


def _print_error(error: ProfilerError) -> None:
    from torch_tb_profiler.cli._styles import emphasize

    where = f"{error.where}: " if error.where else ""
    sys.stderr.write(f"{emphasize('error:', sys.stderr, '31')} {where}{error.message}\n")
    if error.hint:
        sys.stderr.write(f"hint: {error.hint}\n")
