"""Real traces of every producer: all of them load or say why, and the numbers obey their laws."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import asdict

from tests.corpus import real_traces
from torch_tb_profiler.analyses.shared.breakdown import CATEGORIES, breakdown
from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.model.communication.events import host_communication_calls
from torch_tb_profiler.model.kinds import DEVICE_KINDS, event_ends, rows_of_kind
from torch_tb_profiler.model.ranks import split_ranks
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views.overview import build as overview
from torch_tb_profiler.views.overview.payload import Overview

pytestmark = real_traces.MARKS

ROOT = Path(__file__).resolve().parents[2]

DEVICE_FIGURES = {
    "GPU Utilization": "utilization",
    "Est. SM Efficiency": "sm_efficiency",
    "Est. Achieved Occupancy": "achieved_occupancy",
}


@pytest.fixture(scope="module")
def traces(corpus: Path) -> dict[str, Trace | TraceError]:
    return {real_traces.name(path): real_traces.outcome(path) for path in real_traces.files(corpus)}


def parts(traces: dict[str, Trace | TraceError]) -> Iterator[tuple[str, Trace]]:
    for name, trace in traces.items():
        if isinstance(trace, Trace):
            yield from ((f"{name}#{rank}", part) for rank, part in (split_ranks(trace) or {0: trace}).items())


def test_every_file_gives_an_overview_or_a_named_reason(traces: dict[str, Trace | TraceError]) -> None:
    for name, trace in traces.items():
        if isinstance(trace, TraceError):
            assert trace.message and trace.hint, name
    for name, trace in parts(traces):
        reason = overview.TAB.unavailable(trace)
        if reason is None:
            payload = overview.build(trace, NoParams())
            assert payload.steps, name
        else:
            assert len(reason) > 20, name


def test_categories_sum_to_each_step(traces: dict[str, Trace | TraceError]) -> None:
    for name, trace in parts(traces):
        steps = breakdown(trace)
        times = np.stack([steps.times[key] for key in CATEGORIES])
        assert (times.sum(axis=0) == steps.durations).all(), name
        assert (times >= 0).all(), name


def test_device_categories_are_the_union_computed_another_way(traces: dict[str, Trace | TraceError]) -> None:
    """Kernel + Memcpy + Memset + Communication = time covered by device work or host-only communication."""
    for name, trace in parts(traces):
        found = breakdown(trace)
        rows = np.concatenate([rows_of_kind(trace, *DEVICE_KINDS), host_communication_calls(trace)])
        starts, finish = trace.events.start[rows], event_ends(trace)[rows]
        for i, (begin, end) in enumerate(zip(found.steps.starts.tolist(), found.steps.ends.tolist(), strict=True)):
            inside = sum(int(found.times[key][i]) for key in ("kernel", "memcpy", "memset", "communication"))
            assert inside == swept(starts, finish, begin, end), (name, i)


def swept(starts: Any, finish: Any, begin: int, end: int) -> int:
    """Return the covered time inside a window, by counting the open intervals at each boundary."""
    lo, hi = np.clip(starts, begin, end), np.clip(finish, begin, end)
    edges = sorted([(t, 1) for t in lo.tolist()] + [(t, -1) for t in hi.tolist()])
    depth = covered = 0
    previous = begin
    for time, change in edges:
        if depth > 0:
            covered += time - previous
        depth += change
        previous = time
    return covered


def test_every_slice_of_a_readable_file_is_in_the_columns(
    corpus: Path, traces: dict[str, Trace | TraceError]
) -> None:
    compared = 0
    for name, trace in traces.items():
        written = real_traces.written(corpus / "traces" / name)
        if written is None:
            continue  # damaged on purpose; tests/ingest covers these
        if isinstance(trace, TraceError):
            assert not written.events, name
            continue
        assert len(trace) == written.events, name
        assert int((trace.events.phase == ord("X")).sum()) == written.slices, name
        compared += 1
    assert compared > 90


def test_the_predecessor_is_right_on_traces_of_its_time(
    corpus: Path, traces: dict[str, Trace | TraceError]
) -> None:
    """Average breakdown and device figures of the 2021 runs, rounded to us as the predecessor does."""
    compared = 0
    for path in sorted((corpus / "oracle").glob("kineto2021_*.json.gz")):
        oracle = json.loads(gzip.decompress(path.read_bytes()))
        for answer in oracle["workers"]:
            trace = traces[f"{path.name.removesuffix('.json.gz')}/{answer['file']}"]
            assert isinstance(trace, Trace)
            payload = overview.build(trace, NoParams())
            assert payload.average is not None
            (top,) = answer["data"]["overview"]["performance"]
            assert abs(payload.average.duration_ns / 1000 - top["value"]) <= 1, path.name
            times = asdict(payload.average.categories)
            for row in top["children"]:
                ours = times[row["name"].lower().replace(" ", "_")]
                assert abs(ours / 1000 - row["value"]) <= 1, (path.name, row["name"])
            theirs_by_title = {row["title"]: row["value"] for row in answer["data"]["gpu_summary"]}
            (device,) = payload.devices
            for title, ratio in (
                ("GPU Utilization", device.utilization),
                ("Est. SM Efficiency", device.sm_efficiency),
                ("Est. Achieved Occupancy", device.achieved_occupancy),
            ):
                if title in theirs_by_title:
                    assert ratio is not None
                    assert f"{100 * ratio:.2f}" == f"{float(theirs_by_title[title].rstrip(' %')):.2f}", (
                        path.name,
                        title,
                    )
                else:
                    assert ratio is None, (path.name, title)
            compared += 1
    assert compared == 4


def test_the_documentation_lists_every_disagreement_with_the_predecessor(
    corpus: Path, traces: dict[str, Trace | TraceError]
) -> None:
    documented = {}
    for line in (ROOT / "docs" / "predecessor.md").read_text().partition("## Run by run")[2].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 3 and cells[0] != "run" and not cells[0].startswith("-"):
            assert cells[2] and set(cells[2].split()) <= set("RCDALGWHFOS"), line
            documented[cells[0]] = set(cells[1].split(", "))
    found = {}
    for path in sorted((corpus / "oracle").glob("*.json.gz")):
        run = path.name.removesuffix(".json.gz")
        fields: set[str] = set()
        for answer in json.loads(gzip.decompress(path.read_bytes()))["workers"]:
            trace = traces[f"{run}/{answer['file']}"]
            if isinstance(trace, Trace) and overview.TAB.unavailable(trace) is None:
                fields |= disagreements(answer, overview.build(trace, NoParams()))
        if fields:
            found[run] = fields
    assert found == documented


def disagreements(answer: dict[str, Any], payload: Overview) -> set[str]:
    """Return what the predecessor says differently about the average step and the first device."""
    if "overview" not in answer.get("data", {}):
        return {"not shown"}
    assert payload.average is not None
    (top,) = answer["data"]["overview"]["performance"]
    differ = set() if abs(payload.average.duration_ns / 1000 - top["value"]) <= 1 else {"step"}
    times = asdict(payload.average.categories)
    for row in top["children"]:
        ours = times[row["name"].lower().replace(" ", "_")]
        if ours is None or abs(ours / 1000 - row["value"]) > 1:
            differ.add(row["name"])
    theirs_by_title: dict[str, str] = {}
    for row in answer["data"].get("gpu_summary") or []:
        theirs_by_title.setdefault(row["title"], row["value"])
    for title, field in DEVICE_FIGURES.items():
        ratio = getattr(payload.devices[0], field) if payload.devices else None
        mine = None if ratio is None else f"{100 * ratio:.2f}"
        theirs = f"{float(theirs_by_title[title].rstrip(' %')):.2f}" if title in theirs_by_title else None
        if mine != theirs:
            differ.add(title.removeprefix("GPU ").removeprefix("Est. ").replace("Efficiency", "efficiency"))
    return {name.replace("Utilization", "utilization").replace("Achieved O", "achieved o") for name in differ}
