"""The command line: the same numbers without a browser.

Payloads go to stdout, messages to stderr. Exit codes: 0 done, 1 trouble with a trace, 2 wrong usage,
3 a regression (`diff`).
"""

from __future__ import annotations

import argparse
import gzip
import json
import logging
import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from torch_tb_profiler.base.errors import ProfilerError, StorageError, UsageError
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.base.units import parse_duration
from torch_tb_profiler.cli import diff as cli_diff
from torch_tb_profiler.cli._output import print_payload, wait_for

if TYPE_CHECKING:
    from torch_tb_profiler.session import FileState, Session

T = TypeVar("T")

OK, TROUBLE, USAGE = 0, 1, 2
FORMATS = ("json", "table", "csv")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command is None:
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
        _complain(error)
        return USAGE
    except ProfilerError as error:
        _complain(error)
        return TROUBLE
    except BrokenPipeError:
        # The reader (head, less) has gone: nobody is left to be told.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="torch-tb-profiler",
        description="Where the time and the memory of a PyTorch model go, from torch.profiler traces.",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    def command(name: str, run: Any, text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text)
        sub.set_defaults(run=run)
        return sub

    listing = command("list", _list, "list runs, workers and spans")
    listing.add_argument("path", metavar="PATH", help="a log folder, a URL, or one trace file")
    listing.add_argument("--format", choices=FORMATS, default="table")

    view = command("view", _view, "print a view of one trace")
    view.add_argument("slug", metavar="SLUG", help="the view, e.g. overview")
    view.add_argument("path", metavar="PATH", help="a log folder, a URL, or one trace file")
    for name in ("run", "worker", "span"):
        view.add_argument(f"--{name}", dest=f"select_{name}", metavar=name.upper(), help="default: the first")
    view.add_argument("--param", action="append", default=[], metavar="KEY=VALUE", help="a parameter of the view")
    view.add_argument("--format", choices=FORMATS, default="json")

    part = command("slice", _slice, "write a part of a trace as a trace file of its own")
    part.add_argument("path", metavar="PATH", help="a log folder, a URL, or one trace file")
    for name in ("run", "worker", "span"):
        part.add_argument(f"--{name}", dest=f"select_{name}", metavar=name.upper(), help="default: the first")
    part.add_argument("--from", dest="begin", metavar="TIME", help="since the trace's start, such as 1.5s")
    part.add_argument("--to", dest="end", metavar="TIME", help="likewise")
    part.add_argument("--step", metavar="N", help="a step instead of a window")
    part.add_argument("--category", action="append", default=[], metavar="C", help="keep only this; repeatable")
    part.add_argument("--min-duration", default="0ns", metavar="TIME", help="leave shorter slices out")
    part.add_argument("-o", "--output", required=True, metavar="FILE", help="gzip if it ends in .gz; - is stdout")

    diff = command("diff", cli_diff.run, "compare two traces: what changed, and whether it is real")
    cli_diff.add_arguments(diff)

    check = command("check", _check, "say for every file what can be read and what is wrong with it")
    check.add_argument("path", metavar="PATH", help="a log folder, a URL, or one trace file")
    check.add_argument("--format", choices=("table", "json"), default="table")

    serve = command("serve", _serve, "open TensorBoard on a log folder or one trace file")
    serve.add_argument("path", metavar="PATH", help="a log folder, a URL, or one trace file")
    serve.add_argument("--host", default="localhost")
    serve.add_argument("--port", default="6006", help="0 chooses a free one")
    return parser


def _complain(error: ProfilerError) -> None:
    where = f"{error.where}: " if error.where else ""
    sys.stderr.write(f"error: {where}{error.message}\n")
    if error.hint:
        sys.stderr.write(f"hint: {error.hint}\n")


def _session(path: str, settings: Settings) -> Session:
    from torch_tb_profiler.session import Root, Session

    session = Session([Root(path)], settings)
    session.scan()
    if session.error is not None:
        raise ProfilerError(session.error.message, where=session.error.where, hint=session.error.hint)
    return session


# ---- commands ---------------------------------------------------------------------------------------


def _list(options: argparse.Namespace, settings: Settings) -> int:
    session = _session(options.path, settings)
    rows = [
        {
            "run": run.name,
            "worker": worker.name,
            "rank": worker.rank,
            "span": span.name,
            "label": span.label,
            "file": span.file.path,
            "bytes": span.file.size,
        }
        for run in session.catalog.runs
        for worker in run.workers
        for span in worker.spans
    ]
    for problem in session.catalog.problems:
        sys.stderr.write(f"warning: {problem}\n")
    if not rows:
        sys.stderr.write(f"no trace found in {options.path}\n")
    memory = [
        {"run": run.name, "file": number, "name": each.name, "kind": each.kind, "bytes": each.file.size}
        for run in session.catalog.runs
        for number, each in enumerate(run.memory_files)
    ]
    print_payload({"rows": rows, "memory_files": memory} if memory else {"rows": rows}, options.format)
    session.close()
    return OK


def _view(options: argparse.Namespace, settings: Settings) -> int:
    params = dict(_param(text) for text in options.param)
    session = _session(options.path, settings)
    selected = options.select_run, options.select_worker, options.select_span

    def ask() -> tuple[FileState, bytes | None]:
        answer = session.view(options.slug, *selected, params, wait=True, timeout=0.5)
        return answer.state, answer.payload

    try:
        payload = wait_for(ask)
    finally:
        session.close()
    if options.format == "json":
        sys.stdout.write(payload.decode() + "\n")
    else:
        print_payload(json.loads(payload), options.format)
    return OK


def _slice(options: argparse.Namespace, settings: Settings) -> int:
    params = {name: getattr(options, name) for name in ("begin", "end") if getattr(options, name) is not None}
    params = {name: str(parse_duration(text)) for name, text in params.items()}
    params["min_duration_ns"] = str(parse_duration(options.min_duration))
    params["categories"] = ",".join(options.category)
    if options.step is not None:
        params["step"] = options.step
    session = _session(options.path, settings)
    selected = options.select_run, options.select_worker, options.select_span
    try:
        found = wait_for(lambda: session.excerpt(*selected, params, wait=True, timeout=0.5))
        _save(options.output, found.pieces)
    finally:
        session.close()
    return OK


def _save(path: str, pieces: Iterable[bytes]) -> None:
    """Write a file, whole or not at all; "-" is stdout."""
    if path == "-":
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        return
    partial = f"{path}.part"
    try:
        with gzip.open(partial, "wb", 5) if path.endswith(".gz") else open(partial, "wb") as file:
            for piece in pieces:
                file.write(piece)
        os.replace(partial, path)
    except OSError as error:
        raise StorageError(f"cannot be written: {error.strerror or error}", where=path) from error
    finally:
        if os.path.exists(partial):
            os.remove(partial)


def _param(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--param {text!r} is not KEY=VALUE")
    return key, value


def _check(options: argparse.Namespace, settings: Settings) -> int:
    session = _session(options.path, settings)
    files: list[dict[str, Any]] = []
    try:
        for run in session.catalog.runs:
            for worker in run.workers:
                for span in worker.spans:
                    session.wait(session.load(run, span))
                    state = session.state(run, span)
                    files.append(
                        {
                            "file": span.file.path,
                            "state": state.state,
                            "events": state.events,
                            "error": None if state.error is None else _sentence(state.error),
                            "notes": [
                                {"kind": n.kind, "severity": n.severity, "message": n.message, "count": n.count}
                                | {"first_offset": n.first_offset}
                                for n in session.health(run, span)
                            ],
                        }
                    )
    finally:
        session.close()
    if options.format == "json":
        sys.stdout.write(json.dumps({"files": files}, indent=1) + "\n")
    else:
        for file in files:
            events = f"{file['events']:,} events" if file["events"] is not None else file["error"]
            sys.stdout.write(f"{file['state']:7} {file['file']}: {events}\n")
            for note in file["notes"]:
                offset = "" if note["first_offset"] is None else f", first at byte {note['first_offset']:,}"
                sys.stdout.write(f"        {note['severity']}: {note['message']} ({note['count']:,}x{offset})\n")
    if not files:
        sys.stderr.write(f"no trace found in {options.path}\n")
    return OK if files and all(file["state"] == "ready" for file in files) else TROUBLE


def _sentence(error: Any) -> str:
    parts = [error.message, error.where and f"at {error.where}", error.hint]
    return "; ".join(part for part in parts if part)


def _serve(options: argparse.Namespace, settings: Settings) -> int:
    if not options.path.count("://") and not os.path.exists(options.path):
        raise UsageError("there is no such folder or file", where=options.path)
    from tensorboard import main as tensorboard_main

    sys.argv = ["tensorboard", "--logdir", options.path, "--host", options.host, "--port", options.port]
    tensorboard_main.run_main()
    return OK


if __name__ == "__main__":
    sys.exit(main())
