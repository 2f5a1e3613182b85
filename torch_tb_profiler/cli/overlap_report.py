"""`torch-tb-profiler overlap-report`: report the overlap in folders of iteration metrics, as files."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from torch_tb_profiler.base.errors import (
    MissingExtraError,
    NotFoundError,
    ProfilerError,
    StorageError,
    UsageError,
)
from torch_tb_profiler.cli._command import OK, Command
from torch_tb_profiler.cli._session import open_cli_session, wait_with_progress

if TYPE_CHECKING:
    from torch_tb_profiler.base.settings import Settings
    from torch_tb_profiler.session import FileState, Session

_VIEW = "overlap/report"

_RATIO_KEYS = (
    "mean_overlap_ms",
    "mean_compute_ms",
    "mean_allreduce_overlap_ms",
    "mean_reducescatter_overlap_ms",
    "overlap_ratio",
)
"""Figures of a data set that are compared as candidate / reference."""


class _DataSet(NamedTuple):
    """A folder to report on; `label` names its image file, `run` is None for the first run with metrics."""

    label: str
    path: str
    run: str | None


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    for side, role in (("a", "reference"), ("b", "candidate")):
        parser.add_argument(
            side, metavar=side.upper(), nargs="?", help=f"the {role}: a folder with rank_*_metrics.jsonl"
        )
        parser.add_argument(f"--run-{side}", metavar="RUN", help="default: the first run with such metrics")
        parser.add_argument(f"--label-{side}", metavar="NAME", help="default: the name of the folder")
    parser.add_argument(
        "--log-dir", metavar="DIR", action="append", default=[], help="a folder, instead of A and B; repeatable"
    )
    parser.add_argument(
        "--label", metavar="NAME", action="append", default=[], help="label of each --log-dir, in the same order"
    )
    parser.add_argument("--reference", metavar="NAME", help="label of the data set that others are compared with")
    parser.add_argument("--candidate", metavar="NAME", help="label of the data set that is compared with it")
    parser.add_argument(
        "--span", metavar="SPAN", help="which recording to use if a file holds several; default: 1"
    )
    parser.add_argument(
        "-o", "--output", required=True, metavar="DIR", help="folder for summary.json and the timeline images"
    )


def _run(options: argparse.Namespace, settings: Settings) -> int:
    sets = _data_sets(options)
    compared = _compared_labels(options, [each.label for each in sets])
    reports, errors = dict[str, dict[str, Any]](), list[ProfilerError]()
    for each in sets:
        try:
            reports[each.label] = _overlap_report(each.path, each.run, options.span, settings)
        except ProfilerError as error:
            errors.append(error)
    if not reports:
        raise errors[0]
    summaries = {label: report["summary"] for label, report in reports.items()}
    summary: dict[str, Any] = {"datasets": summaries}
    if compared is not None and all(label in summaries for label in compared):
        summary["comparison"] = _compare(*(summaries[label] for label in compared))
    path = os.path.join(options.output, "summary.json")
    try:
        os.makedirs(options.output, exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(json.dumps(summary, indent=2) + "\n")
        for label, report in reports.items():
            _draw_timeline(os.path.join(options.output, f"{label}_timeline.png"), label, report)
    except OSError as error:
        raise StorageError(f"cannot be written: {error.strerror or error}", where=options.output) from error
    except MissingExtraError as error:
        errors.append(error)
    sys.stdout.write(f"{path}\n")
    if errors:
        for other in errors[1:]:
            sys.stderr.write(f"{other.where or options.output}: {other.message}\n")
        raise errors[0]
    return OK


def _data_sets(options: argparse.Namespace) -> list[_DataSet]:
    """Return the folders in the order of the command line; raise UsageError if two have one label."""
    if options.log_dir:
        if options.a is not None:
            raise UsageError("folders are given as A B or with --log-dir, not both")
        if len(options.label) not in (0, len(options.log_dir)):
            raise UsageError(
                f"--label is given {len(options.label)} times, --log-dir {len(options.log_dir)} times",
                hint="give each --log-dir a --label, or none",
            )
        labels = options.label or [None] * len(options.log_dir)
        sets = [_DataSet(_label(*each), each[1], None) for each in zip(labels, options.log_dir, strict=True)]
    elif options.a is None or options.b is None:
        raise UsageError("the folders are missing", hint="A B -o DIR, or --log-dir DIR --label NAME ... -o DIR")
    elif options.label:
        raise UsageError("--label belongs to --log-dir", hint="name A and B with --label-a and --label-b")
    else:
        sets = [
            _DataSet(_label(options.label_a, options.a), options.a, options.run_a),
            _DataSet(_label(options.label_b, options.b), options.b, options.run_b),
        ]
    names = [each.label for each in sets]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        hint = "name them with --label" if options.log_dir else "name them with --label-a and --label-b"
        raise UsageError(f"{'both' if len(sets) == 2 else 'two'} sides are called {twice!r}", hint=hint)
    return sets


def _label(name: str | None, path: str) -> str:
    """Return the label of a folder, of characters that a file name can have."""
    return re.sub(r"[^\w.-]+", "_", name or os.path.basename(os.path.abspath(path)))


def _compared_labels(options: argparse.Namespace, labels: list[str]) -> tuple[str, str] | None:
    """Return the labels of reference and candidate; None if neither is named and there aren't two data sets."""
    named = [None if name is None else _label(name, "") for name in (options.reference, options.candidate)]
    for name in named:
        if name is not None and name not in labels:
            raise UsageError(f"there is no data set {name!r}", hint=f"labels: {', '.join(labels)}")
    reference, candidate = named
    if len(labels) == 2:
        first, second = labels
        reference = reference or (first if candidate != first else second)
        candidate = candidate or (second if reference != second else first)
    if reference is None and candidate is None:
        return None
    if reference is None or candidate is None or reference == candidate:
        raise UsageError("a comparison needs two data sets", hint="name them with --reference and --candidate")
    return reference, candidate


def _compare(reference: dict[str, Any], candidate: dict[str, Any]) -> dict[str, Any]:
    """Return the overlap ratios of both, and candidate / reference of each figure; null where that is 0."""
    return {
        "reference_overlap_ratio": reference["overlap_ratio"],
        "candidate_overlap_ratio": candidate["overlap_ratio"],
        "ratio_delta": candidate["overlap_ratio"] - reference["overlap_ratio"],
        "ratios": {key: candidate[key] / reference[key] if reference[key] else None for key in _RATIO_KEYS},
    }


def _overlap_report(path: str, run: str | None, span: str | None, settings: Settings) -> dict[str, Any]:
    """Return totals and series by step of a folder; raise NotFoundError if it holds no iteration metrics."""
    with open_cli_session(path, settings) as session:
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

    return wait_with_progress(ask)


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
