"""`torch-tb-profiler list`: list the runs, workers and spans of a log folder."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from torch_tb_profiler.cli._command import OK, Command, add_format, add_path, check_table_options
from torch_tb_profiler.cli._output import print_payload
from torch_tb_profiler.cli._session import ProgressLine, open_cli_session, other_file_rows, print_other_files_note

if TYPE_CHECKING:
    from torch_tb_profiler.base.settings import Settings
    from torch_tb_profiler.session import Session


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_path(parser)
    add_format(parser, "table")


def _run(options: argparse.Namespace, settings: Settings) -> int:
    check_table_options(options)
    with open_cli_session(options.path, settings) as session:
        catalog = session.catalog
        _read_merged_files(session)
        named = any(run.tracker_name for run in catalog.runs)
        rows = [
            {
                "run": run.name,
                **({"tracker_name": run.tracker_name} if named else {}),
                "worker": worker.name,
                "rank": worker.rank,
                "span": span.name,
                "label": span.label,
                "file": span.file.path,
                "bytes": span.file.size,
            }
            for run in catalog.runs
            for worker in session.workers(run)
            for span in worker.spans
        ]
    for problem in catalog.problems:
        sys.stderr.write(f"warning: {problem}\n")
    print_other_files_note(catalog)
    if not rows and not any(run.dumps for run in catalog.runs):
        sys.stderr.write(f"no trace found in {options.path}\n")
    memory = [
        {"run": run.name, "file": number, "name": each.name, "kind": each.kind, "bytes": each.file.size}
        for run in catalog.runs
        for number, each in enumerate(run.memory_files)
    ]
    dumps = [
        {"run": run.name, "rank": each.rank, "kind": each.kind, "file": each.file.path, "bytes": each.file.size}
        for run in catalog.runs
        for each in run.dumps
    ]
    others = other_file_rows(catalog)
    print_payload(
        {
            "rows": rows,
            **({"memory_files": memory} if memory else {}),
            **({"dumps": dumps} if dumps else {}),
            **({"other_files": others} if others else {}),
        },
        options,
    )
    return OK


def _read_merged_files(session: Session) -> None:
    """Load the files of several ranks, as only their content shows the ranks; other files stay unread."""
    from torch_tb_profiler.discovery.names import is_merged_file_name
    from torch_tb_profiler.session.state import POLL_SECONDS

    workers = [worker for run in session.catalog.runs for worker in run.workers]
    with ProgressLine() as line:
        for span in [span for worker in workers if is_merged_file_name(worker.name) for span in worker.spans]:
            file = session.load(span)
            while not session.wait(file, POLL_SECONDS):
                line.show(session.state(span))


COMMAND = Command(_add_arguments, _run)
