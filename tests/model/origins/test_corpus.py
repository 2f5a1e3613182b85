"""Origins of kernels against traces whose answer is known: right, or silent with a reason; never wrong."""

from __future__ import annotations

import csv
import gzip
import json
import os
import random
import re
import shutil
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

import torch_tb_profiler
from tests.support.traces import read
from torch_tb_profiler.model.origin_records import OriginRecords
from torch_tb_profiler.model.origins.captures import find_captures
from torch_tb_profiler.model.origins.origins import origins
from torch_tb_profiler.model.trace import ABSENT, Trace

CORPUS = Path(os.environ.get("TRACE_CORPUS", "/nonexistent"))
CASES = CORPUS / "kernel_identity"

pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="TRACE_CORPUS holds no kernel_identity")

Row = dict[str, Any]


def origins_of(case: str, tmp_path: Path) -> tuple[list[Row], Any]:
    """Return the rows of `columns().origins` of a case with its events, and the answer beside it."""
    folder = tmp_path / "run"
    shutil.copytree(CASES / case, folder, ignore=shutil.ignore_patterns("expected.json"))
    with torch_tb_profiler.open(str(tmp_path)) as log:
        columns = log["run"].columns()
        rows = columns.origins.to_pylist()
    return rows, json.loads((CASES / case / "expected.json").read_text())


def file_and_line(text: str | None) -> list[str]:
    """Return `file:line` of "model.py(21): forward" or "model.py:31:forward"."""
    match = re.match(r"(.*\.py)[:(](\d+)", text or "")
    return [f"{match[1]}:{match[2]}"] if match else []


@pytest.mark.parametrize("case", ["nodes", "sizes", "count"])
def test_a_replay_is_aligned_with_its_capture(case: str, tmp_path: Path) -> None:
    rows, expected = origins_of(f"pairs/{case}", tmp_path)
    rows.sort(key=lambda row: row["start_ns"])
    assert len(rows) == len(expected)
    for row, want in zip(rows, expected, strict=True):
        assert row["name"] == want["kernel"]
        assert row["operator"] == want["operator"]
        assert row["modules"] == want["modules"]
        assert (row["lines"] or [])[:1] == (file_and_line(want["line"]) or [])
        assert (json.loads(row["shapes"]) if row["shapes"] else None) == want["shapes"]
        assert row["how"] == ("capture" if want["operator"] else None)
        assert (row["reason"] is None) == (want["why"] is None), row
        if want["why"] is not None and "sizes" in want["why"]:
            assert row["reason"] == "captures of several batch sizes fit"


@pytest.mark.parametrize("case", ["cuspy", "inline_none", "inline_all"])
def test_nodes_of_graphs_carry_what_was_noted_about_them(case: str, tmp_path: Path) -> None:
    shutil.copytree(CASES / "drawn", tmp_path / "drawn", ignore=shutil.ignore_patterns("expected.json"))
    with torch_tb_profiler.open(str(tmp_path / "drawn")) as log:
        rows = log[case].columns().origins.to_pylist()
    expected = json.loads((CASES / "drawn" / case / "expected.json").read_text())
    assert len(rows) == expected["device_events_in_graphs"]
    by_name: dict[tuple[str, str | None, str | None], int] = defaultdict(int)
    for row in rows:
        by_name[row["name"], row["region"], next(iter(row["lines"] or []), None)] += 1
        assert row["operator"] is None and row["reason"] is not None
        assert row["how"] == ("graph node" if row["region"] or row["lines"] else None)
    wanted: dict[tuple[str, str | None, str | None], int] = defaultdict(int)
    work = [node for node in expected["nodes"] if not node["category"].endswith("_node")]
    for node in work:
        line = next(iter(file_and_line(node["line"])), None)  # the launch stacks lie beside cuspy's file
        wanted[node["kernel"], node["region"], line] += node["calls"]
    assert by_name == wanted


@pytest.mark.parametrize("case", ["compiled", "compiled_recorder"])
def test_compiled_kernels_are_joined_with_their_record(case: str, tmp_path: Path) -> None:
    rows, expected = origins_of(case, tmp_path)
    rows.sort(key=lambda row: row["start_ns"])
    expected.sort(key=lambda want: want["ts"])
    for row, want in zip(rows, expected, strict=True):
        assert row["name"] == want["event"]
        assert row["how"] == "compile record"
        assert (row["compile_id"], row["backward"]) == (want["compile_id"], want["backward"])
        assert row["nodes"] == want["source_nodes"]
        assert row["lines"] == want["lines"]
        assert row["reason"] is not None or want["nodes_unknown_because"] is None


REAL = ["tl_rocm_vllm_piecewise", "tl_mi300_sglang_decode"]


def launches(columns: Any) -> dict[int, str]:
    """Return the name of the call that launched each device event: without operators TraceLens names it."""
    names = columns.events["name"].to_pylist()
    work = [*columns.kernels.to_pylist(), *columns.copies.to_pylist()]
    return {row["event"]: names[row["launch"]] for row in work if row["launch"] is not None}


@pytest.mark.parametrize("name", REAL)
def test_times_by_operator_and_module_are_those_of_tracelens(name: str) -> None:
    with torch_tb_profiler.open(str(CORPUS / "traces")) as log:
        columns = log[name].columns()
        events, rows, call = columns.events, columns.origins.to_pylist(), launches(columns)
    duration = np.asarray(events["duration_ns"].fill_null(0))
    ours: dict[tuple[str, str], float] = defaultdict(float)
    for row in rows:
        operator = re.sub(
            r"(?<=attention_ragged)_\d+$", "", row["operator"] or call[row["event"]]
        )  # cut there by TraceLens
        module = re.sub(r"_\d+$", "", row["modules"][-1]) if row["modules"] else "NA"
        ours[operator, module] += duration[row["event"]] / 1000
    with open(CORPUS / "oracle" / "tracelens" / name / "ops_summary.csv", encoding="utf-8") as file:
        theirs = {
            (row["name"], row["parent_module"].removeprefix("nn.Module: ")): float(
                row["total_direct_kernel_time_sum"]
            )
            for row in csv.DictReader(file)
        }
    total = sum(theirs.values())
    apart = sum(abs(ours.get(key, 0.0) - time) for key, time in theirs.items())
    assert apart <= 0.001 * total, {key: (ours.get(key), time) for key, time in theirs.items()}


DAMAGE = ["lost", "middle", "renamed", "renamed_as_captured", "swapped"]


def damage(events: list[Row], kind: str, chance: random.Random) -> list[Row]:
    """Return the kernels of replays, in order, with some lost, renamed, or out of order."""
    if kind == "lost":
        return [event for event in events if chance.random() > 0.05]
    if kind == "middle":
        third = len(events) // 3
        return [*events[:third], *events[third + 40 :]]
    if kind == "renamed":  # another algorithm was tuned
        return [event | {"name": "other_kernel"} if chance.random() < 0.1 else event for event in events]
    if kind == "renamed_as_captured":  # another algorithm was tuned, which other launches of the graph use
        return [
            event | {"name": chance.choice(events)["name"]} if chance.random() < 0.02 else event
            for event in events
        ]
    swapped = [dict(event) for event in events]
    for first, second in zip(swapped[::2], swapped[1::2], strict=False):
        if chance.random() < 0.1:
            first["ts"], second["ts"] = second["ts"], first["ts"]
    return swapped


def known_values(trace: Trace) -> dict[int, dict[str, Any]]:
    """Return what is known of each replayed kernel, by its mark."""
    found, marks = origins(trace), trace.arg_int("mark")
    columns = ("operator", "modules", "lines", "shapes")
    return {
        int(marks[row]): {name: found.value(name, index) for name in columns}
        for index, row in enumerate(found.rows.tolist())
        if marks[row] != ABSENT
    }


@pytest.mark.slow
@pytest.mark.xdist_group("corpus")
@pytest.mark.parametrize("kind", DAMAGE)
@pytest.mark.parametrize("name", REAL)
def test_a_damaged_replay_is_silent_rather_than_wrong(name: str, kind: str) -> None:
    replayed, truth = replays(name)[0], undamaged_values(name)
    assert all(value is not None for values in truth.values() for value in values.values() if values["operator"])
    known = 0
    for seed in range(3):
        chance = random.Random(seed)
        found = values_of(name, [damage(work, kind, chance) for work in replayed])
        for mark, values in found.items():
            for column, value in values.items():
                expected = truth[mark][column]
                prefix = column == "lines" and value is not None and expected[: len(value)] == value
                assert value is None or value == expected or prefix, (mark, column, value, expected)
                known += value is not None
    few = name == "tl_rocm_vllm_piecewise" and kind == "middle"  # its graphs are shorter than what is lost
    assert known or few, "silence alone proves nothing"


@cache
def replays(name: str) -> tuple[list[list[Row]], list[Row]]:
    """Return the kernels of each replay, in order and with a mark, and all other events."""
    events = read_events(next((CORPUS / "traces" / name).glob("*.json.gz")))
    launches = {e["args"]["correlation"] for e in events if e.get("name") == "hipGraphLaunch"}
    replayed: dict[int, list[Row]] = defaultdict(list)
    rest = []
    for number, event in enumerate(events):
        correlation = event.get("args", {}).get("correlation")
        if event.get("cat") == "kernel" and correlation in launches:
            replayed[correlation].append(event | {"args": event["args"] | {"mark": number}})
        else:
            rest.append(event)
    for work in replayed.values():
        work.sort(key=lambda event: event["ts"])
    return [*replayed.values()], rest


def values_of(name: str, groups: Iterable[list[Row]]) -> dict[int, dict[str, Any]]:
    """Return what is known of a trace whose replays ran these kernels."""
    trace = read([*replays(name)[1], *(event for work in groups for event in work)])
    return known_values(replace(trace, origin_records=captured_records(name)))


@cache
def undamaged_values(name: str) -> dict[int, dict[str, Any]]:
    return values_of(name, replays(name)[0])


@cache
def captured_records(name: str) -> OriginRecords:
    captured = read_events(next((CORPUS / "traces" / f"{name}_capture").glob("*.json.gz")))
    return OriginRecords(find_captures(read(captured), "capture"))


def read_events(path: Path) -> list[Row]:
    content = json.loads(gzip.decompress(path.read_bytes()).decode("utf-8", "replace"), strict=False)
    return [event for event in content["traceEvents"] if isinstance(event, dict)]
