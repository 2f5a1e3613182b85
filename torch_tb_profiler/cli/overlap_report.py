"""`torch-tb-profiler overlap-report`: compare the overlap in two folders of iteration metrics, as files."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from typing import TYPE_CHECKING, Any

from torch_tb_profiler.base.errors import MissingExtraError, NotFoundError, StorageError, UsageError
from torch_tb_profiler.cli._command import OK, Command
from torch_tb_profiler.cli._session import open_session, wait_for_answer

if TYPE_CHECKING:
    from torch_tb_profiler.base.settings import Settings
    from torch_tb_profiler.session import FileState, Session

_VIEW = "overlap/report"


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    for side, role in (("a", "reference"), ("b", "candidate")):
        parser.add_argument(side, metavar=side.upper(), help=f"the {role}: a folder with rank_*_metrics.jsonl")
        parser.add_argument(f"--run-{side}", metavar="RUN", help="default: the first run with such metrics")
        parser.add_argument(f"--label-{side}", metavar="NAME", help="default: the name of the folder")
    parser.add_argument(
        "--span", metavar="SPAN", help="which recording to use if a file holds several; default: 1"
    )
    parser.add_argument(
        "-o", "--output", required=True, metavar="DIR", help="folder for summary.json and the timeline images"
    )


def _run(options: argparse.Namespace, settings: Settings) -> int:
    labels = _labels(options)
    reports = {
        labels[0]: _overlap_report(options.a, options.run_a, options.span, settings),
        labels[1]: _overlap_report(options.b, options.run_b, options.span, settings),
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
        for label, report in reports.items():
            _draw_timeline(os.path.join(options.output, f"{label}_timeline.png"), label, report)
    except OSError as error:
        raise StorageError(f"cannot be written: {error.strerror or error}", where=options.output) from error
    sys.stdout.write(f"{path}\n")
    return OK


def _labels(options: argparse.Namespace) -> tuple[str, str]:
    """Return the labels of the two sides, which also name the image files; raise UsageError if they are equal."""
    names = [
        options.label_a or os.path.basename(os.path.abspath(options.a)),
        options.label_b or os.path.basename(os.path.abspath(options.b)),
    ]
    a, b = (re.sub(r"[^\w.-]+", "_", name) for name in names)
    if a == b:
        raise UsageError(f"both sides are called {a!r}", hint="name them with --label-a and --label-b")
    return a, b


def _overlap_report(path: str, run: str | None, span: str | None, settings: Settings) -> dict[str, Any]:
    """Return totals and series by step of a folder; raise NotFoundError if it holds no iteration metrics."""
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
            _print_recordings_note(session, name, path)
            return report
    raise NotFoundError("there are no iteration metrics", where=path, hint="AORTA writes rank_*_metrics.jsonl")


def _payload(session: Session, run: str, span: str | None) -> bytes:
    def ask() -> tuple[FileState, bytes | None]:
        answer = session.view(_VIEW, run, None, span, wait=True, timeout=0.5)
        return answer.state, answer.payload

    return wait_for_answer(ask)


def _print_recordings_note(session: Session, run: str, path: str) -> None:
    workers = session.workers(session.catalog.run(run))
    count = max(len(worker.spans) for worker in workers)
    if count > 1:
        sys.stderr.write(f"note: {path} holds up to {count} recordings per rank; choose one with --span\n")


def _draw_timeline(path: str, label: str, report: dict[str, Any]) -> None:
    """Write a PNG of compute and overlap by global step.

    Raises MissingExtraError without matplotlib, OSError if the file can't be written.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError(
            "the images of overlap-report need matplotlib, which is not installed",
            hint='summary.json is written; for the images: pip install "torch-tb-profiler[plots]"',
        ) from error
    figure = Figure(figsize=(10, 5), layout="tight")
    axes = figure.add_subplot()
    marker = "o" if len(report["step"]) == 1 else ""
    for name, title in (("compute_ns", "compute"), ("overlap_ns", "compute overlapped with communication")):
        axes.plot(report["step"], [value / 1e6 for value in report[name]], marker=marker, label=title)
    axes.set_xlabel("global step")
    axes.set_ylabel("ms, mean of the ranks")
    axes.set_ylim(bottom=0)
    # matplotlib would read a pair of dollar signs in the label as a formula.
    axes.set_title(label.replace("$", r"\$"))
    axes.grid(True, linestyle="--", alpha=0.5)
    axes.legend()
    figure.savefig(path)


COMMAND = Command(_add_arguments, _run)
