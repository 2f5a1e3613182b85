"""What is advised on every real run, as reviewed: `advice.tsv` says of each piece of advice why it is right."""

from __future__ import annotations

import csv
from pathlib import Path

from tests.corpus import real_traces
from torch_tb_profiler.analyses.overview.advice import advice
from torch_tb_profiler.analyses.schedule.step_spans import recorded_spans
from torch_tb_profiler.analyses.schedule.what_if import UNNAMED_TARGETS, what_if_step_time
from torch_tb_profiler.model.trace import Trace

pytestmark = real_traces.MARKS

TABLE = Path(__file__).parent / "advice.tsv"


def read_reviewed() -> dict[tuple[str, str], list[tuple[str, str, str]]]:
    """Return the reviewed rows by (run, number of the file), `number#rank` in a file of several ranks; every row
    says why it is right."""
    rows: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
    with TABLE.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file, dialect="excel-tab"):
            assert row["why"]
            rows.setdefault((row["run"], row["file"]), []).append((row["advice"], row["gain"], row["cause"]))
    return rows


def format_advice(name: str, trace: Trace) -> list[tuple[str, str, str]]:
    """Format advice as the table spells it."""
    found = advice(trace)
    for each in found:
        if each.gain is not None and each.gain.basis == "what_if" and each.finding.id in UNNAMED_TARGETS:
            gained = recorded_spans(trace).mean_ns[0] - what_if_step_time(trace, each.finding.id, 100)
            message = f"{name}: the Critical path says another gain of {each.finding.id}"
            assert abs(each.gain.ns - gained) < 1, message
    return [
        (
            each.finding.id,
            "-" if each.gain_share is None else f"{each.gain_share:.1%}",
            " ".join(filter(None, (each.finding.case, each.finding.subject[:70]))) or "-",
        )
        for each in found
    ] or [("none", "-", "-")]


def test_advice_on_every_run_is_the_reviewed_one(corpus: Path) -> None:
    seen = {}
    for run in sorted(path for path in (corpus / "traces").iterdir() if path.is_dir()):
        for number, path in enumerate(sorted(run.iterdir())):
            ranks = real_traces.ranks(path)
            for rank, trace in ranks.items():
                file = f"{number}#{rank}" if len(ranks) > 1 else str(number)
                seen[run.name, file] = format_advice(f"{run.name} {file}", trace)
    assert seen == read_reviewed()
