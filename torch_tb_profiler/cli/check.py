"""`torch-tb-profiler check`: whether each file can be read, and its problems.

Given a configuration of Gaudi's profiler, which is made before a run, it says what such a run won't record.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch_tb_profiler.base.format import replace_unprintable
from torch_tb_profiler.cli._command import OK, TROUBLE, Command, add_path
from torch_tb_profiler.cli._session import open_cli_session, other_file_rows, print_other_files_note

if TYPE_CHECKING:
    from torch_tb_profiler.base.settings import Settings
    from torch_tb_profiler.discovery import Span
    from torch_tb_profiler.session import ErrorInfo, FileState, Session


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_path(parser)
    parser.add_argument(
        "--format", choices=("table", "json"), default="table", help="output format; default: table"
    )


def _run(options: argparse.Namespace, settings: Settings) -> int:
    path = Path(options.path)
    if path.suffix == ".json" and path.is_file() and _is_configuration(path):
        return _check_configuration(path, options.format)
    with open_cli_session(options.path, settings) as session:
        files = [
            _check_file(session, span)
            for run in session.catalog.runs
            for worker in run.workers
            for span in worker.spans
        ]
        hangs = [_check_dumps(session, run.name) for run in session.catalog.runs if run.dumps]
        others = other_file_rows(session.catalog)
        print_other_files_note(session.catalog)
    if options.format == "json":
        found = {"files": files, "other_files": others, **({"hangs": hangs} if hangs else {})}
        sys.stdout.write(json.dumps(found, indent=1) + "\n")
    else:
        sys.stdout.writelines(line for file in files for line in _lines(file))
        sys.stdout.writelines(f"other   {each['file']}: {each['kind']}; {each['advice']}\n" for each in others)
        sys.stdout.writelines(line for hang in hangs for line in _hang_lines(hang))
    if not files and not hangs:
        sys.stderr.write(f"no trace found in {options.path}\n")
    states = [each["state"] for each in (*files, *(dump for hang in hangs for dump in hang["dumps"]))]
    return OK if states and all(state == "ready" for state in states) else TROUBLE


def _is_configuration(path: Path) -> bool:
    """Return whether a file is a configuration of Gaudi's profiler, by its name or how it begins."""
    from torch_tb_profiler.ingest.gaudi_config import MAX_BYTES, is_gaudi_config

    if path.name == "prof_config.json":
        return True
    with path.open("rb") as stream:
        return path.stat().st_size <= MAX_BYTES and is_gaudi_config(stream.read())


def _check_configuration(path: Path, format_: str) -> int:
    """Print what a run with this configuration records and what it leaves out; TROUBLE if that is anything."""
    from torch_tb_profiler.ingest.gaudi_config import read_gaudi_config
    from torch_tb_profiler.model.vendors.gaudi import describe_config, find_omissions

    with path.open("rb") as stream:
        config = read_gaudi_config(stream, str(path))
    requested, omitted = dict(describe_config(config)), find_omissions(config)
    if format_ == "json":
        found = {"file": str(path), "asked": requested, "left_out": [each._asdict() for each in omitted]}
        sys.stdout.write(json.dumps({"configuration": found}, indent=1) + "\n")
    else:
        lines = [f"asks    {name}: {setting}" for name, setting in requested.items()]
        lines += [f"{'lacks' if each.certain else 'may lack':7} {each.sentence}" for each in omitted]
        sys.stdout.writelines(replace_unprintable(line) + "\n" for line in lines)
    return TROUBLE if any(each.certain for each in omitted) else OK


def _check_dumps(session: Session, run: str) -> dict[str, Any]:
    """Read the flight recorder dumps of a run; return the state of each, and who holds the job up."""
    from torch_tb_profiler.cli._session import wait_with_progress

    def ask() -> tuple[FileState, bytes | None]:
        answer = session.view("hangs", run, wait=True, timeout=0.5)
        return answer.state, answer.payload

    payload = json.loads(wait_with_progress(ask))
    return {
        "run": run,
        "verdict": payload["verdict"]["verdict"],
        "headline": "".join(phrase["text"] for phrase in payload["headline"]),
        "dumps": [
            {
                "file": row["file"],
                "state": "ready" if row["state"] == "ready" else "failed",
                "entries": row["entries"],
                "error": row["problem"],
            }
            for row in payload["ranks"]
            if row["file"] is not None
        ],
        "problems": payload["problems"],
    }


def _hang_lines(hang: dict[str, Any]) -> list[str]:
    lines = []
    for dump in hang["dumps"]:
        about = dump["error"] if dump["entries"] is None else f"{dump['entries']:,} entries"
        lines.append(f"{dump['state']:7} {dump['file']}: {about}\n")
    lines += [f"        warning: {problem}\n" for problem in hang["problems"]]
    return [*lines, f"hang    {hang['run']}: {hang['headline']}\n"]


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
