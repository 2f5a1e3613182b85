"""`torch-tb-profiler report`: write the page with its data as one file that opens from disk."""

from __future__ import annotations

import argparse
import shlex
import sys
from typing import TYPE_CHECKING

from torch_tb_profiler.base.format import format_bytes
from torch_tb_profiler.cli._command import OK, PATH_HELP, Command, add_path, add_selection, selection
from torch_tb_profiler.cli._output import write_file
from torch_tb_profiler.cli._session import find_run_name, open_cli_session, wait_with_progress

if TYPE_CHECKING:
    from torch_tb_profiler.base.settings import Settings
    from torch_tb_profiler.session import FileState, Session

MAX_BYTES = 5_000_000
"""Size limit of a report, small enough for most mail servers and pull requests."""

METADATA_BYTES = 20_000
"""Bytes reserved for what a report says about itself and its limits."""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_path(parser)
    add_selection(parser)
    parser.add_argument("--compare", metavar="OTHER", help=f"compare with the first run of OTHER, {PATH_HELP}")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="the HTML file; - is stdout")


def _run(options: argparse.Namespace, settings: Settings) -> int:
    from datetime import datetime, timezone
    from importlib.metadata import version

    from torch_tb_profiler.report import ReportInfo, collect_contents, render_frame, render_page
    from torch_tb_profiler.session import Root
    from torch_tb_profiler.storage import open_location

    sides = {"candidate": options.path, "base": options.compare}
    compares = options.compare is not None
    roots = [Root(path, side) for side, path in sides.items()] if compares else [Root(options.path)]
    with open_cli_session(roots, settings) as session:
        run, worker, span = selection(options)
        if compares:
            names = [each.name for each in session.catalog.runs]
            base = _load(session, find_run_name(names, "base", None, options.compare), None, None)
            first = _load(session, find_run_name(names, "candidate", run, options.path), worker, span)
        else:
            base, first = None, _load(session, run, worker, span)
        title = f"{first[0]}: PyTorch Profiler"
        frame_bytes = sum(len(text.encode()) for text in render_frame(title))
        contents = collect_contents(session, first, base, MAX_BYTES - frame_bytes - METADATA_BYTES)
        created = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
        command = f"torch-tb-profiler serve {shlex.quote(open_location(options.path).label)}"
        text = render_page(
            contents, ReportInfo(created, version("torch-tb-profiler"), session.root, command), title
        ).encode()
    write_file(options.output, [text])
    sys.stderr.write(f"{options.output}: {format_bytes(len(text))}; not included:\n")
    sys.stderr.writelines(f"- {each}\n" for each in contents.left_out)
    return OK


def _load(session: Session, run: str | None, worker: str | None, span: str | None) -> tuple[str, str, str]:
    """Load the trace and what its views need; return its full names. Raises ProfilerError if it can't be read."""

    # Runs of flight recorder dumps or of memory snapshots have no overview.
    if not session.catalog.run(run).workers:
        slug = "hangs"
    else:
        slug = "memory" if session.is_snapshot(run, worker, span) else "overview"

    def ask() -> tuple[FileState, tuple[str, str, str] | None]:
        answer = session.view(slug, run, worker, span, wait=True, timeout=0.5)
        return answer.state, None if answer.payload is None else (answer.run, answer.worker, answer.span)

    return wait_with_progress(ask)


COMMAND = Command(_add_arguments, _run)
