"""The same question gets the same numbers on every surface, for every view of all real runs."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec
import pytest

from tests.corpus import real_traces
from tests.surfaces.asking import Payload, Surfaces, agrees, shorten
from torch_tb_profiler.cli.report import MAX_BYTES as MAX_REPORT_BYTES
from torch_tb_profiler.report import ReportInfo, render_page
from torch_tb_profiler.summary import MAX_BYTES, Summary
from torch_tb_profiler.views import SLUGS

pytestmark = real_traces.MARKS

TRUNCATED = ("truncated", "gzip_damaged")
"""Kinds of notes on a file that is cut off."""

ASK_BY_SURFACE: dict[str, Callable[[Surfaces, str, str], Payload]] = {
    "HTTP": Surfaces.http,
    "command line": Surfaces.command_line,
    "Python": Surfaces.python,
    "MCP": Surfaces.agent,
    "report": Surfaces.report,
}


@pytest.fixture(scope="module")
def session_answer(surfaces: Surfaces) -> Callable[[str, str], Payload]:
    """Return what the session says of a view of a run: the payload, or why there is none."""

    @cache
    def session_answer(slug: str, run: str) -> Payload:
        return surfaces.answered(slug, run)

    for run in surfaces.session.catalog.runs:
        for worker in run.workers:
            for span in worker.spans:
                surfaces.session.wait(surfaces.session.load(span))
    return session_answer


@pytest.mark.parametrize("slug", SLUGS)
@pytest.mark.parametrize("surface", ASK_BY_SURFACE)
def test_every_surface_says_the_same_numbers(
    surfaces: Surfaces, session_answer: Callable[[str, str], Payload], surface: str, slug: str
) -> None:
    shown = 0
    for run in surfaces.log:
        wanted, found = session_answer(slug, run), ASK_BY_SURFACE[surface](surfaces, slug, run)
        if surface == "MCP":
            assert agrees(found, shorten(wanted)), run
        elif surface == "report" and isinstance(session_answer("overview", run), str):
            assert found == session_answer("overview", run), run  # without an overview there is no report
        elif isinstance(wanted, str):
            assert found.endswith(wanted), run  # the command line puts the place before the message
        else:
            assert found == wanted, run
        shown += not isinstance(found, str)
    assert shown or slug in ("overlap", "hangs")


def test_a_summary_says_the_numbers_of_the_views(surfaces: Surfaces) -> None:
    summed = 0
    for run in surfaces.log:
        code, text, error = surfaces.command("summary", str(surfaces.path), "--run", run, "--format", "json")
        if code:
            assert surfaces.answered("overview", run) in error, run
            continue
        markdown = surfaces.command("summary", str(surfaces.path), "--run", run)[1]
        assert max(len(text.encode()), len(markdown.encode())) <= MAX_BYTES, run
        assert surfaces.tools.summary(run) == markdown, run
        summary = msgspec.json.decode(text, type=Summary)
        step = surfaces.log[run].summary().step
        check_agreement(summary, answers(surfaces, run, summary.span), run, late=step.left_out if step else [])
        summed += 1
    assert summed > 70


def answers(surfaces: Surfaces, run: str, span: str) -> dict[str, list[Any]]:
    """Return view -> its payloads, over the workers that answer it."""
    found: dict[str, list[Any]] = defaultdict(list)
    for worker, spans in surfaces.log[run].workers.items():
        for slug in ("overview", "operators", "kernels", "modules", "memory") if span in spans else ():
            query = {"run": run, "worker": worker, "span": span}
            body = json.loads(surfaces.client.get(f"/view/{slug}", query_string=query).data)
            if "payload" in body:
                found[slug].append({**body["payload"], "worker": worker})
    return found


def check_agreement(summary: Summary, views: dict[str, list[Any]], run: str, late: list[str]) -> None:
    """Check a summary against the views, without the steps of the `late` workers, which it doesn't average."""
    complete = [each for each in views["overview"] if each["average"] is not None]
    whole = [each for each in complete if not any(note["kind"] in TRUNCATED for note in each["health"])]
    averages = [each["average"] for each in whole or complete if each["worker"] not in late]
    assert (summary.step is None) == (not averages), run
    if summary.step is not None:
        assert summary.step.mean_ns == pytest.approx(sum(each["duration_ns"] for each in averages) / len(averages))
        known = [time for time in summary.step.breakdown.values() if time is not None]
        assert sum(known) <= summary.step.mean_ns * 1.000001, run
        if summary.communication is not None and summary.step.breakdown["communication"] is not None:
            # The part of a step beside copies, which are no compute, is exposed as well.
            exposed, part = summary.communication.exposed_ns, summary.step.breakdown["communication"]
            assert exposed == pytest.approx(part, abs=0.02 * summary.step.mean_ns), run
    assert summary.read == len(views["overview"]) <= summary.workers, run
    for listed, table, rows, time in (
        (summary.operators, "operators", "rows", ("device_self_ns", "host_self_ns")),
        (summary.kernels, "kernels", "rows", ("total_ns",)),
        (summary.modules, "modules", "classes", ("device_self_ns",)),
    ):
        sums = [of_names(views[table], rows, each) for each in time]
        most = next((each for each in sums if any(spent for _, spent in each)), None)
        if most is not None:
            assert [(top.calls, top.time_ns) for top in listed] == most[: len(listed)], (run, table)
    peaks = [
        (device["kind"] != "CPU", device["peak_allocated"]["bytes"])
        for each in views["memory"]
        for device in each["devices"]
        if device["peak_allocated"] is not None
    ]
    assert (summary.memory.peak_bytes if summary.memory else None) == (max(peaks)[1] if peaks else None), run


def of_names(payloads: list[Any], rows: str, time: str) -> list[tuple[int, int]]:
    """Return (calls, time) of each name over all workers, most time first."""
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for row in (row for payload in payloads for row in payload[rows]):
        sums[row["name"]][0] += row["calls"]
        sums[row["name"]][1] += row[time] or 0
    return sorted(((calls, spent) for calls, spent in sums.values() if spent), key=lambda each: -each[1])


def test_a_report_of_every_run_fits(surfaces: Surfaces, session_answer: Callable[[str, str], Payload]) -> None:
    made = 0
    for run in surfaces.log:
        if not isinstance(session_answer("overview", run), str):
            assert surfaces.report("overview", run) == session_answer("overview", run), run
            text = render_page(surfaces.reports[run], ReportInfo("today", "1", str(surfaces.path), "serve"), run)
            assert len(text.encode()) < MAX_REPORT_BYTES, run
            made += 1
    assert made > 70
