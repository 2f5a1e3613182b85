"""Modules of real traces: the laws of their times, and the predecessor's table where it was right."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.corpus import real_traces
from torch_tb_profiler.analyses.modules.times import module_times
from torch_tb_profiler.model.kinds import DEVICE_KINDS, event_ends, rows_of_kind
from torch_tb_profiler.model.modules import modules
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views._shared.module_parts import FlameParams, build_flame
from torch_tb_profiler.views.lightning import build as build_lightning
from torch_tb_profiler.views.modules import build

pytestmark = real_traces.MARKS

Row = dict[str, Any]


@pytest.fixture(scope="module")
def traces(corpus: Path) -> dict[str, Trace]:
    """Traces with module calls."""
    recorded = {name: trace for name, trace in real_traces.whole_files(corpus) if modules(trace).names}
    assert len(recorded) > 20
    return recorded


def test_host_totals_are_those_of_the_python_frames(traces: dict[str, Trace]) -> None:
    for name, trace in traces.items():
        model = modules(trace)
        times = module_times(trace, model)
        ours: dict[str, int] = defaultdict(int)
        for code, module in enumerate(model.names):
            ours[f"nn.Module: {module}"] += int(times.host_total[code])
        frames: dict[str, int] = defaultdict(int)
        column = trace.args["Python module id"]
        for row in column.rows.tolist():
            frames[trace.strings[trace.events.name[row]]] += int(trace.events.duration[row])
        assert ours == frames, name


def test_a_module_is_its_own_time_its_operators_and_the_modules_inside(traces: dict[str, Trace]) -> None:
    for name, trace in traces.items():
        model = modules(trace)
        times = module_times(trace, model)
        inside = np.zeros(len(model.names), np.int64)
        rows = model.nesting.rows
        rows = rows[np.isin(model.nesting.parent[rows], model.calls)]
        np.add.at(
            inside, model.code[model.nesting.parent[rows]], event_ends(trace)[rows] - trace.events.start[rows]
        )
        assert (times.host_self + times.operators_time + inside == times.host_total).all(), name
        assert (times.host_self >= 0).all() and (times.operators_time >= 0).all(), name
        assert (times.backward_host_self >= 0).all(), name


def test_all_device_time_is_in_modules_outside_or_not_linked(traces: dict[str, Trace]) -> None:
    for name, trace in traces.items():
        payload = build(trace, NoParams())
        rows = rows_of_kind(trace, *DEVICE_KINDS)
        recorded = int(np.maximum(trace.events.duration[rows], 0).sum())
        listed = list(flat(payload.rows))
        own = sum(row.device_self_ns for row in listed)
        assert own + payload.outside.device_ns + payload.unlinked.device_ns == recorded == payload.device_ns, name
        assert own == sum(row.forward_device_self_ns + row.backward_device_self_ns for row in listed), name
        assert own == sum(row.device_total_ns for row in payload.rows), name
        assert all(sum(part.device_ns for part in row.families) == row.device_total_ns for row in listed), name


def flat(rows: Any) -> Any:
    for row in rows:
        yield row
        yield from flat(row.children)


def test_frames_of_the_flame_graph_fit_into_each_other(traces: dict[str, Trace]) -> None:
    for name, trace in traces.items():
        model = modules(trace)
        for time in ("host", "device"):
            frames = build_flame(model, trace, FlameParams(time)).frames
            inside = np.zeros(len(frames), np.int64)
            for i, frame in enumerate(frames):
                if frame.parent is not None:
                    assert frame.parent < i, name
                    inside[frame.parent] += frame.value_ns
            assert all(inside[i] <= frame.value_ns for i, frame in enumerate(frames)), (name, time)


def test_backward_work_of_a_real_training_run_on_a_gpu_finds_its_modules(traces: dict[str, Trace]) -> None:
    (trace,) = (each for name, each in traces.items() if name.startswith("tl_mi300_resnet_actckpt_8rank/"))
    payload = build(trace, NoParams())
    (root,) = payload.rows
    assert root.name == "DistributedDataParallel_0"
    assert root.backward_device_total_ns > 2 * root.forward_device_total_ns
    linked = payload.device_ns - payload.unlinked.device_ns
    assert payload.outside.device_ns < 0.02 * linked
    # Checkpointed blocks are called again by backward, and keep their place.
    blocks = {row.name: row for row in flat(payload.rows)}
    assert blocks["CheckpointWrapper_0"].calls == 3
    assert blocks["BasicBlock_0"].calls == 6


def test_host_figures_are_those_of_the_predecessor(corpus: Path, traces: dict[str, Trace]) -> None:
    """Occurrences, operators and host times; its device times lack what it could not link."""
    compared = 0
    for path in sorted((corpus / "oracle").glob("*.json.gz")):
        answer = json.loads(gzip.decompress(path.read_bytes()))
        for worker in answer["workers"]:
            table = (worker.get("data") or {}).get("module_view")
            trace = traces.get(f"{answer['run']}/{worker.get('file')}")
            if table and trace is not None:
                compare(f"{answer['run']}/{worker['file']}", trace, table["data"])
                compared += 1
    assert compared > 15


def compare(name: str, trace: Trace, table: list[Row]) -> None:
    model = modules(trace)
    times = module_times(trace, model)
    ours: dict[str, np.ndarray] = defaultdict(lambda: np.zeros(4, np.int64))
    columns = (times.calls, times.operators, times.host_total, times.host_self)
    for code, module in enumerate(model.names):
        ours[module] += [int(column[code]) for column in columns]
    for row in walk(table):
        calls, operators, total, own = ours[row["name"]].tolist()
        assert calls == row["occurences"], (name, row["name"])
        assert operators == row["operators"], (name, row["name"])
        # It adds up microseconds as floats: a nanosecond or less per event.
        events = calls + operators
        assert abs(total - row["host_duration"] * 1000) <= events, (name, row["name"])
        assert abs(own - row["self_host_duration"] * 1000) <= 2 * events, (name, row["name"])


def walk(rows: list[Row]) -> Any:
    for row in rows:
        yield row
        yield from walk(row.get("children", []))


def test_a_real_lightning_run_has_hooks_and_modules(corpus: Path) -> None:
    (path,) = (corpus / "traces").glob("gen_lightning_dev/*.json.gz")
    trace = real_traces.read(path)
    payload = build_lightning(trace, NoParams())
    hooks = {row.name: row for row in flat(payload.hooks)}
    assert hooks["SingleDeviceStrategy.training_step"].calls == 3
    assert hooks["SingleDeviceStrategy.training_step"].owner == "Strategy"
    marks = {code for code, text in enumerate(trace.strings) if text.startswith("[pl][profile]")}
    rows = [row for row in range(len(trace)) if trace.events.name[row] in marks]
    assert sum(row.calls for row in flat(payload.hooks)) == len(rows)
    assert sum(row.host_total_ns for row in flat(payload.hooks)) == int(trace.events.duration[rows].sum())
    assert all(row.host_self_ns >= 0 for row in flat(payload.hooks))
    (net,) = payload.rows
    assert (net.name, net.calls) == ("net", 3)
    assert [child.name for child in net.children] == [f"net.{i}" for i in range(6)]
    # The same modules as their Python frames tell.
    (frames,) = build(trace, NoParams()).rows
    assert [child.class_name for child in frames.children] == [
        child.class_name.rpartition(".")[2] for child in net.children
    ]
    assert [child.operators for child in net.children] == [child.operators for child in frames.children]
