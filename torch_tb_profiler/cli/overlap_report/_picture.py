"""The picture of a folder: computation and overlap by global step."""

from __future__ import annotations

from typing import Any

from torch_tb_profiler.base.errors import MissingExtraError


def draw(path: str, label: str, report: dict[str, Any]) -> None:
    """Write a PNG; MissingExtraError without matplotlib, OSError if the file cannot be written."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError(
            "the pictures of overlap-report need a package that is not installed",
            hint='summary.json is written; pip install "torch-tb-profiler[plots]"',
        ) from error
    figure = Figure(figsize=(10, 5), layout="tight")
    axes = figure.add_subplot()
    marker = "o" if len(report["step"]) == 1 else ""
    for name, title in (("compute_ns", "computation"), ("overlap_ns", "computation while communicating")):
        axes.plot(report["step"], [value / 1e6 for value in report[name]], marker=marker, label=title)
    axes.set_xlabel("global step")
    axes.set_ylabel("ms, mean of the ranks")
    axes.set_ylim(bottom=0)
    # A label may hold what matplotlib would read as a formula.
    axes.set_title(label.replace("$", r"\$"))
    axes.grid(True, linestyle="--", alpha=0.5)
    axes.legend()
    figure.savefig(path)
