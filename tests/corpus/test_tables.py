"""Operator and kernel tables of real traces: their laws, and what the predecessor and TraceLens answer."""

from __future__ import annotations

import csv
import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from tests.corpus import real_traces
from torch_tb_profiler.base.intervals import total
from torch_tb_profiler.model.calls.calltree import call_tree
from torch_tb_profiler.model.kinds import (
    DEVICE_KINDS,
    Kind,
    event_ends,
    event_intervals,
    rows_of_kind,
)
from torch_tb_profiler.model.operators import operators
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.views._shared.availability import kernels_reason, operators_reason
from torch_tb_profiler.views.kernels import build as kernels_view
from torch_tb_profiler.views.kernels.payload import KernelRow, KernelsParams
from torch_tb_profiler.views.operators import build as operators_view
from torch_tb_profiler.views.operators.payload import OperatorsParams

pytestmark = real_traces.MARKS

JOINED = {"tl_rocm_vllm_piecewise", "tl_mi300_sglang_decode"}
"""Runs whose TraceLens tables were joined with another trace (of the graph's capture)."""


@pytest.fixture(scope="module")
def traces(corpus: Path) -> dict[str, Trace]:
    found = {}
    for path in real_traces.files(corpus):
        ranks = real_traces.ranks(path)
        for rank, part in ranks.items():
            found[real_traces.name(path) + (f"#{rank}" if len(ranks) > 1 else "")] = part
    assert len(found) > 100
    return found


def test_device_time_is_the_operators_or_not_linked(traces: dict[str, Trace]) -> None:
    for name, trace in traces.items():
        work = rows_of_kind(trace, *DEVICE_KINDS)
        length = int((event_ends(trace) - trace.events.start)[work].sum())
        for group_by in ("name", "shape", "signature"):
            if operators_reason(trace) is not None:
                continue
            payload = operators_view.build(trace, OperatorsParams(group_by))
            lost = payload.unlinked.device_ns if payload.unlinked else 0
            assert (payload.totals.device_self_ns or 0) + lost == length, (name, group_by)


def test_host_self_times_are_never_negative(traces: dict[str, Trace]) -> None:
    for name, trace in traces.items():
        assert (operators(trace).host_self >= 0).all(), name


def test_self_times_of_a_thread_sum_to_what_its_roots_cover(traces: dict[str, Trace]) -> None:
    """Over all nodes of the tree: operators, annotations, Python frames and runtime calls; side lanes apart."""
    for name, trace in traces.items():
        tree = call_tree(trace)
        rows = tree.rows[tree.lane[tree.rows] == 0]
        length = event_ends(trace) - trace.events.start
        own = length[rows].copy()
        at = np.full(len(trace), -1)
        at[rows] = np.arange(len(rows))
        inner = rows[tree.parent[rows] >= 0]
        np.subtract.at(own, at[tree.parent[inner]], length[inner])
        roots = rows[tree.parent[rows] < 0]
        for thread in np.unique(trace.events.thread[rows]).tolist():
            mine = roots[trace.events.thread[roots] == thread]
            covered = total(event_intervals(trace, mine))
            assert int(own[trace.events.thread[rows] == thread].sum()) == covered, (name, thread)


def test_kernel_rows_are_the_kernel_events(traces: dict[str, Trace]) -> None:
    for name, trace in traces.items():
        rows = rows_of_kind(trace, Kind.KERNEL)
        if kernels_reason(trace) is not None:
            assert len(rows) == 0, name
            continue
        length = int((event_ends(trace) - trace.events.start)[rows].sum())
        for group_by in ("name", "launch"):
            payload = kernels_view.build(trace, KernelsParams(group_by))
            assert sum(row.calls for row in payload.rows) == payload.calls == len(rows), name
            assert sum(row.total_ns for row in payload.rows) == payload.total_ns == length, name
            cores = payload.tensor_cores
            assert cores.used_ns + cores.not_used_ns + cores.unknown_ns == length, name
            for row in payload.rows:
                assert row.min_ns <= row.median_ns <= row.p95_ns <= row.max_ns, (name, row)


# ---- the predecessor on traces of its time --------------------------------------------------------------


def us(ns: float | None) -> int:
    return round((ns or 0) / 1000)


def shape(text: str | None) -> str:
    return json.dumps(json.loads(text)) if text else "[]"


def answers(corpus: Path, traces: dict[str, Trace]) -> Iterator[tuple[str, Trace, dict[str, Any]]]:
    count = 0
    for path in sorted((corpus / "oracle").glob("kineto2021_*.json.gz")):
        for answer in json.loads(gzip.decompress(path.read_bytes()))["workers"]:
            name = f"{path.name.removesuffix('.json.gz')}/{answer['file']}"
            yield name, traces[name], answer["data"]
            count += 1
    assert count == 4


def test_the_operator_tables_are_the_predecessors(corpus: Path, traces: dict[str, Trace]) -> None:
    for name, trace, data in answers(corpus, traces):
        tables: tuple[tuple[Literal["name", "shape"], str], ...] = (
            ("name", "operation_table_by_name"),
            ("shape", "operation_table_by_name_input"),
        )
        for group_by, table in tables:
            shaped = group_by == "shape"
            ours = Counter(
                (
                    row.name,
                    shape(row.input_shape) if shaped else "",
                    row.calls,
                    us(row.device_self_ns),
                    us(row.device_total_ns),
                    us(row.host_self_ns),
                    us(row.host_total_ns),
                )
                for row in operators_view.build(trace, OperatorsParams(group_by)).rows
            )
            theirs = Counter(
                (
                    row["name"],
                    shape(row["input_shape"]) if shaped else "",
                    row["calls"],
                    row.get("device_self_duration", 0),
                    row.get("device_total_duration", 0),
                    row["host_self_duration"],
                    row["host_total_duration"],
                )
                for row in data[table]["data"]
            )
            assert ours == theirs, (name, group_by)


def test_the_kernel_tables_are_the_predecessors(corpus: Path, traces: dict[str, Trace]) -> None:
    for name, trace, data in answers(corpus, traces):
        rows = kernels_view.build(trace, KernelsParams()).rows
        compare(
            name,
            {(r.name,): figures(r) for r in rows},
            {(r[0],): [float(value) for value in r[2:]] for r in data["kernel_table"]["data"]["rows"]},
        )
        rows = [row for row in kernels_view.build(trace, KernelsParams("launch")).rows if row.operator]
        # There, what no operator launched is under a step, an optimizer or the root of the tree.
        known = {row.operator for row in rows}
        compare(
            name,
            {
                (r.name, r.operator, shape(r.grid), shape(r.block), r.registers, r.shared_memory): figures(r)
                for r in rows
            },
            {
                (r[0], r[1], shape(r[2]), shape(r[3]), int(r[4]), int(r[5])): [float(value) for value in r[8:]]
                for r in data["kernel_op_table"]["data"]["rows"]
                if r[1] in known
            },
        )


def figures(row: KernelRow) -> list[float]:
    times = [ns / 1000 for ns in (row.total_ns, row.mean_ns, row.max_ns, row.min_ns)]
    if row.total_ns == 0:  # kernels of no length have a plain mean; there it is 0
        return [row.calls, *times, 0, 0]
    return [row.calls, *times, row.mean_blocks_per_sm or 0, 100 * (row.mean_occupancy or 0)]


def compare(name: str, ours: dict[Any, list[float]], theirs: dict[Any, list[float]]) -> None:
    """Check that two tables are equal but for their rounding: to us, and to two decimals."""
    assert ours.keys() == theirs.keys(), name
    for key, values in theirs.items():
        for mine, wanted, slack in zip(ours[key], values, (0, 0.5, 0.5, 0.5, 0.5, 0.006, 0.006), strict=False):
            assert abs(mine - wanted) <= slack, (name, key, ours[key], values)


# ---- TraceLens ------------------------------------------------------------------------------------------


def tracelens(corpus: Path, table: str) -> Iterator[tuple[str, list[dict[str, str]]]]:
    for path in sorted((corpus / "oracle" / "tracelens").glob(f"*/{table}.csv")):
        if path.parent.name not in JOINED:
            with path.open(newline="") as stream:
                yield path.parent.name, list(csv.DictReader(stream))


def of_run(traces: dict[str, Trace], run: str) -> Trace:
    (trace,) = [trace for name, trace in traces.items() if name.startswith(f"{run}/")]
    return trace


def test_kernel_times_are_those_of_tracelens(corpus: Path, traces: dict[str, Trace]) -> None:
    compared = 0
    for run, rows in tracelens(corpus, "kernel_summary"):
        theirs: dict[str, list[float]] = defaultdict(lambda: [0, 0])
        for row in rows:
            theirs[row["Kernel name"]][0] += float(row["Kernel duration (µs)_count"])
            theirs[row["Kernel name"]][1] += float(row["Kernel duration (µs)_sum"])
        payload = kernels_view.build(of_run(traces, run), KernelsParams())
        ours = {row.name: (row.calls, row.total_ns / 1000) for row in payload.rows}
        for copy in payload.memory_operations:
            if copy.name in theirs:  # it lists copies only where an operator launched them
                ours[copy.name] = (copy.calls, copy.total_ns / 1000)
        assert ours.keys() == theirs.keys(), run
        for name, (calls, time) in ours.items():
            assert calls == theirs[name][0], (run, name)
            assert abs(time - theirs[name][1]) < 0.01 + 1e-6 * time, (run, name)
            compared += 1
    assert compared > 100


def test_operators_with_kernels_are_those_of_tracelens(corpus: Path, traces: dict[str, Trace]) -> None:
    compared = 0
    for run, rows in tracelens(corpus, "ops_summary"):
        trace = of_run(traces, run)
        found = operators(trace)
        ours: dict[str, list[float]] = defaultdict(lambda: [0, 0])
        for code, time in zip(trace.events.name[found.rows].tolist(), found.device_self.tolist(), strict=True):
            if time:
                ours[trace.strings[code]][0] += 1
                ours[trace.strings[code]][1] += time / 1000
        theirs: dict[str, list[float]] = defaultdict(lambda: [0, 0])
        for row in rows:  # one for each module that calls it
            theirs[row["name"]][0] += float(row["Count"])
            theirs[row["name"]][1] += float(row["total_direct_kernel_time_sum"])
        assert ours.keys() == theirs.keys(), run
        for name, (calls, time) in ours.items():
            assert calls == theirs[name][0], (run, name)
            if abs(time - theirs[name][1]) > 0.01 + 1e-4 * time:
                time -= fills(trace, name)  # it leaves memset out on some devices
            assert abs(time - theirs[name][1]) < 0.01 + 1e-4 * time, (run, name)
            compared += 1
    assert compared > 60


def fills(trace: Trace, name: str) -> float:
    """Return the time of the memsets that operators of a name launched, us."""
    found, work = operators(trace), rows_of_kind(trace, Kind.MEMSET)
    work = work[found.owner[work] >= 0]
    names = trace.events.name[found.rows[found.owner[work]]].tolist()
    mine = work[[trace.strings[code] == name for code in names]]
    return float((event_ends(trace) - trace.events.start)[mine].sum() / 1000)
