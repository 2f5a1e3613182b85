"""`torch-tb-profiler report`: the page with its answers as one file that opens from disk."""

from __future__ import annotations

import argparse
import shlex
import sys
from typing import TYPE_CHECKING

from torch_tb_profiler.base.format import format_bytes
from torch_tb_profiler.cli._command import OK, PATH, Command, add_path, add_selection, selection
from torch_tb_profiler.cli._files import save
from torch_tb_profiler.cli._session import open_session, run_name, wait_for_answer

if TYPE_CHECKING:
    from torch_tb_profiler.base.settings import Settings
    from torch_tb_profiler.session import FileState, Session

MAX_BYTES = 5_000_000
"""Of a report: what a mail server or a pull request takes."""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_path(parser)
    add_selection(parser)
    parser.add_argument("--compare", metavar="OTHER", help=f"what it is compared with: the first run of {PATH}")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="an HTML file; - is stdout")


def _run(options: argparse.Namespace, settings: Settings) -> int:
    from datetime import datetime, timezone
    from importlib.metadata import version

    from torch_tb_profiler.report import About, collect, frame, page
    from torch_tb_profiler.session import Root
    from torch_tb_profiler.storage import open_location

    sides = {"candidate": options.path, "base": options.compare}
    compares = options.compare is not None
    roots = [Root(path, side) for side, path in sides.items()] if compares else [Root(options.path)]
    with open_session(roots, settings) as session:
        run, worker, span = selection(options)
        if compares:
            names = [each.name for each in session.catalog.runs]
            base = _read(session, run_name(names, "base", None, options.compare), None, None)
            first = _read(session, run_name(names, "candidate", run, options.path), worker, span)
        else:
            base, first = None, _read(session, run, worker, span)
        title = f"{first[0]}: PyTorch Profiler"
        around = sum(len(text.encode()) for text in frame(title))
        contents = collect(session, first, base, MAX_BYTES - around - 20_000)
        made = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
        command = f"torch-tb-profiler serve {shlex.quote(open_location(options.path).label)}"
        text = page(contents, About(made, version("torch-tb-profiler"), session.root, command), title).encode()
    save(options.output, [text])
    sys.stderr.write(f"{options.output}: {format_bytes(len(text))}; it leaves out:\n")
    sys.stderr.writelines(f"- {each}\n" for each in contents.left_out)
    return OK


def _read(session: Session, run: str | None, worker: str | None, span: str | None) -> tuple[str, str, str]:
    """Wait for all files that the views of a trace need; its names. ProfilerError if it cannot be read."""

    def ask() -> tuple[FileState, tuple[str, str, str] | None]:
        answer = session.view("overview", run, worker, span, wait=True, timeout=0.5)
        return answer.state, None if answer.payload is None else (answer.run, answer.worker, answer.span)

    return wait_for_answer(ask)


COMMAND = Command(_add_arguments, _run)
