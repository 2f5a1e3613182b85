"""`torch-tb-profiler overlap-report`: two folders of iteration metrics side by side, as files."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from typing import TYPE_CHECKING, Any

from torch_tb_profiler.base.errors import NotFoundError, StorageError, UsageError
from torch_tb_profiler.cli._command import OK, Command
from torch_tb_profiler.cli._session import open_session, wait_for_answer

if TYPE_CHECKING:
    from torch_tb_profiler.base.settings import Settings
    from torch_tb_profiler.session import FileState, Session

_VIEW = "overlap/report"


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    for side, role in (("a", "reference"), ("b", "candidate")):
        parser.add_argument(side, metavar=side.upper(), help=f"the {role}: a folder with rank_*_metrics.jsonl")
        parser.add_argument(f"--run-{side}", metavar="RUN", help="default: the first with such metrics")
        parser.add_argument(f"--label-{side}", metavar="NAME", help="default: the name of the folder")
    parser.add_argument("--span", metavar="SPAN", help="which recording of a file that holds several; default: 1")
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="gets summary.json and the pictures")


def _run(options: argparse.Namespace, settings: Settings) -> int:
    labels = _labels(options)
    reports = {
        labels[0]: _report(options.a, options.run_a, options.span, settings),
        labels[1]: _report(options.b, options.run_b, options.span, settings),
    }
    summaries = {label: report["summary"] for label, report in reports.items()}
    reference, candidate = (summaries[label]["overlap_ratio"] for label in labels)
    summary = {
        "datasets": summaries,
        "comparison": {
            "reference_overlap_ratio": reference,
            "candidate_overlap_ratio": candidate,
            "ratio_delta": candidate - reference,
        },
    }
    path = os.path.join(options.output, "summary.json")
    try:
        os.makedirs(options.output, exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(json.dumps(summary, indent=2) + "\n")
        from torch_tb_profiler.cli.overlap_report._picture import draw

        for label, report in reports.items():
            draw(os.path.join(options.output, f"{label}_timeline.png"), label, report)
    except OSError as error:
        raise StorageError(f"cannot be written: {error.strerror or error}", where=options.output) from error
    sys.stdout.write(f"{path}\n")
    return OK


def _labels(options: argparse.Namespace) -> tuple[str, str]:
    """The names of the two sides, which also name files."""
    names = [
        options.label_a or os.path.basename(os.path.abspath(options.a)),
        options.label_b or os.path.basename(os.path.abspath(options.b)),
    ]
    a, b = (re.sub(r"[^\w.-]+", "_", name) for name in names)
    if a == b:
        raise UsageError(f"both sides are called {a!r}", hint="name them: --label-a, --label-b")
    return a, b


def _report(path: str, run: str | None, span: str | None, settings: Settings) -> dict[str, Any]:
    """The totals of a folder and its series; NotFoundError if it holds no metrics of iterations."""
    with open_session(path, settings) as session:
        names = [run] if run is not None else [each.name for each in session.catalog.runs]
        for name in names:
            try:
                payload = _payload(session, name, span)
            except NotFoundError:
                if name == names[-1]:
                    raise
                continue
            report: dict[str, Any] = json.loads(payload)
            _say_recordings(session, name, path)
            return report
    raise NotFoundError("there are no metrics of iterations", where=path, hint="AORTA writes rank_*_metrics.jsonl")


def _payload(session: Session, run: str, span: str | None) -> bytes:
    def ask() -> tuple[FileState, bytes | None]:
        answer = session.view(_VIEW, run, None, span, wait=True, timeout=0.5)
        return answer.state, answer.payload

    return wait_for_answer(ask)


def _say_recordings(session: Session, run: str, path: str) -> None:
    workers = session.workers(session.catalog.run(run))
    most = max(len(worker.spans) for worker in workers)
    if most > 1:
        sys.stderr.write(f"note: {path} holds up to {most} recordings of a rank; --span chooses which\n")


COMMAND = Command(_add_arguments, _run)
