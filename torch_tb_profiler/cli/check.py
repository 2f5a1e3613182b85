"""`torch-tb-profiler check`: whether each file can be read, and its problems."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from torch_tb_profiler.cli._command import OK, TROUBLE, Command, add_path
from torch_tb_profiler.cli._session import open_session, other_files, print_other_files_note

if TYPE_CHECKING:
    from torch_tb_profiler.base.settings import Settings
    from torch_tb_profiler.discovery import Span
    from torch_tb_profiler.session import ErrorInfo, Session


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_path(parser)
    parser.add_argument(
        "--format", choices=("table", "json"), default="table", help="output format; default: table"
    )


def _run(options: argparse.Namespace, settings: Settings) -> int:
    with open_session(options.path, settings) as session:
        files = [
            _check_file(session, span)
            for run in session.catalog.runs
            for worker in run.workers
            for span in worker.spans
        ]
        others = other_files(session.catalog)
        print_other_files_note(session.catalog)
    if options.format == "json":
        sys.stdout.write(json.dumps({"files": files, "other_files": others}, indent=1) + "\n")
    else:
        sys.stdout.writelines(line for file in files for line in _lines(file))
        sys.stdout.writelines(f"other   {each['file']}: {each['kind']}; {each['advice']}\n" for each in others)
    if not files:
        sys.stderr.write(f"no trace found in {options.path}\n")
    return OK if files and all(file["state"] == "ready" for file in files) else TROUBLE


def _check_file(session: Session, span: Span) -> dict[str, Any]:
    """Load one file and return its state, number of events, error and health notes."""
    session.wait(session.load(span))
    state = session.state(span)
    return {
        "file": span.file.path,
        "state": state.state,
        "events": state.events,
        "error": None if state.error is None else _error_text(state.error),
        "notes": [
            {
                "kind": note.kind,
                "severity": note.severity,
                "message": note.message,
                "count": note.count,
                "first_offset": note.first_offset,
            }
            for note in session.health(span)
        ],
    }


def _error_text(error: ErrorInfo) -> str:
    parts = [error.message, error.where and f"at {error.where}", error.hint]
    return "; ".join(part for part in parts if part)


def _lines(file: dict[str, Any]) -> list[str]:
    events = file["error"] if file["events"] is None else f"{file['events']:,} events"
    lines = [f"{file['state']:7} {file['file']}: {events}\n"]
    for note in file["notes"]:
        offset = "" if note["first_offset"] is None else f", first at byte {note['first_offset']:,}"
        lines.append(f"        {note['severity']}: {note['message']} ({note['count']:,}x{offset})\n")
    return lines


COMMAND = Command(_add_arguments, _run)
