"""Tables, modules, places and searches know the origin of replayed and compiled kernels."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from msgspec.structs import replace

import torch_tb_profiler
from tests.model.origins.drawing import LAYERS, capture, captures_of, host, replay
from tests.support.traces import draw, read
from torch_tb_profiler.analyses.kernels.table import KernelFilter, filter_device_work
from torch_tb_profiler.analyses.modules.flame import build_module_flame
from torch_tb_profiler.analyses.modules.times import module_times
from torch_tb_profiler.analyses.operators import OperatorFilter, replayed_operator_times
from torch_tb_profiler.analyses.schedule.places import PlaceKind, program_places
from torch_tb_profiler.analyses.timeline.search import find_hits
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.model.kinds import Kind, rows_of_kind
from torch_tb_profiler.model.modules import has_modules, modules
from torch_tb_profiler.model.origin_records import OriginRecords
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views._shared.availability import operators_reason as operators_unavailable
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.kernels.build import build as build_kernels
from torch_tb_profiler.views.kernels.build import build_origins
from torch_tb_profiler.views.kernels.payload import KernelRowParams, KernelsParams
from torch_tb_profiler.views.modules import build as build_modules
from torch_tb_profiler.views.operators.build import build as build_operators
from torch_tb_profiler.views.operators.payload import OperatorsParams

KERNELS = [kernel for _, _, kernel in LAYERS]
CASES = Path(os.environ.get("TRACE_CORPUS", "/nonexistent")) / "kernel_identity"


def two_replays() -> Trace:
    """Draw two replays of a captured graph inside an operator, and a kernel of a graph that nobody captured."""
    around = host("cpu_op", "my::serve", 9_995, 500)
    events = [around, *replay(KERNELS), *replay(KERNELS, 10_200), *replay(["other"], 20_000)]
    return replace(read(events), origin_records=OriginRecords(captures_of(capture())))


def test_modules_and_their_flame_graph_hold_replayed_kernels() -> None:
    trace = two_replays()
    assert has_modules(trace)
    model = modules(trace)
    times = module_times(trace, model)
    spent = dict(zip(model.names, times.forward_total.tolist(), strict=True))
    assert spent == {"Norm_0": 16_000, "Linear_0": 16_000, "Linear_1": 16_000, "Block_0": 16_000}
    assert (times.outside.time, times.unlinked.time) == (0, 8_000)  # of the graph that was not captured
    assert times.device_time == 9 * 8_000
    flame = build_module_flame(trace, model, "device")
    inside = {name: flame.names[flame.parent[i]] for i, name in enumerate(flame.names) if flame.parent[i] >= 0}
    assert inside == {"aten::native_layer_norm": "Norm_0", "aten::mm": "Linear_1", "aten::add": "Block_0"}
    assert flame.names.count("aten::mm") == 2
    rows = build_modules(trace, NoParams()).rows
    kernels = rows_of_kind(trace, Kind.KERNEL).tolist()
    assert [row.event in kernels for row in rows] == [True] * 4


def test_the_host_times_of_replayed_modules_are_unknown() -> None:
    called = [host("python_function", "nn.Module: Head_0", 30_000, 50), host("cpu_op", "aten::mm", 30_010, 20)]
    replays = two_replays()
    trace = replace(read([*replay(KERNELS), *called]), origin_records=replays.origin_records)
    payload = build_modules(trace, NoParams())
    rows = {row.name: row for row in payload.rows}
    linear, head = rows["Linear_0"], rows["Head_0"]
    fields = ("calls", "operators", "host_total_ns", "host_self_ns", "operators_ns", "host_share")
    assert [getattr(linear, name) for name in fields] == [None] * len(fields)
    assert (head.calls, head.operators, head.host_total_ns, head.host_self_ns) == (1, 1, 50_000, 30_000)
    classes = {each.name: each for each in payload.classes}
    assert (classes["Linear"].calls, classes["Linear"].host_exclusive_ns) == (None, None)
    assert (classes["Head"].calls, classes["Head"].host_exclusive_ns) == (1, 50_000)
    assert plain(payload.reasons["host_total_ns"]).startswith("a graph replayed these modules")
    details = plain(build_modules(replays, NoParams()).details)
    assert details == "11.1% of GPU time has no recorded launch or graph capture."


def test_a_trace_without_graphs_has_the_modules_that_it_records() -> None:
    trace = draw("host cpu_op aten::mm 0 10\nhost cuda_runtime cudaLaunchKernel 2 2 correlation=1\n")
    assert not has_modules(trace) and modules(trace).names == ()


def test_kernels_say_where_all_their_launches_come_from() -> None:
    trace = two_replays()
    rows = {row.name: row for row in build_kernels(trace, KernelsParams()).rows}
    norm, product, other = rows["layer_norm_kernel"], rows["gemm"], rows["other"]
    assert (norm.origin_operator, norm.origin_module, norm.origin_line) == (
        "aten::native_layer_norm",
        "Norm_0",
        "model.py:10",
    )
    assert norm.origin_reason is None
    assert (product.origin_operator, product.origin_module) == ("aten::mm", None)
    assert product.origin_reason == "its kernels come from several places"
    assert [row.origin_places for row in (norm, product, other)] == [1, 2, 0]
    found = build_origins(trace, KernelRowParams(event=product.event))
    places = found.rows
    assert [(row.operator, row.module, row.lines, row.kernels) for row in places] == [
        ("aten::mm", "Linear_0", ["model.py:11"], 2),
        ("aten::mm", "Linear_1", ["model.py:12"], 2),
    ]
    assert (other.origin_operator, other.origin_line) == (None, None)
    assert other.origin_reason is not None and "capture" in other.origin_reason
    lost = build_origins(draw("gpu0 gpu_memcpy lost 0 10 stream=7"), KernelRowParams(event=0))
    assert [row.reason for row in lost.rows] == ["the launch was not recorded"]
    assert found.reason is None and lost.reason is None

    def names(**conditions: Any) -> set[str]:
        return {row.name for row in build_kernels(trace, KernelsParams(**conditions)).rows}

    assert names(origin="unknown") == {"other"}
    assert names(origin="known") == set(KERNELS)
    assert names(operator="aten::mm") == {"gemm"}
    assert names(operator="my::serve") == set(KERNELS)  # the recorded launch still counts


def test_launches_without_an_origin_hide_none_of_the_others() -> None:
    """One of three launches of a kernel belongs to a graph that nobody captured."""
    events = [*replay(KERNELS), *replay(KERNELS, 10_200), *replay([KERNELS[0]], 20_000)]
    trace = replace(read(events), origin_records=OriginRecords(captures_of(capture())))
    rows = {row.name: row for row in build_kernels(trace, KernelsParams()).rows}
    norm = rows["layer_norm_kernel"]
    assert (norm.calls, norm.origin_operator, norm.origin_line) == (3, "aten::native_layer_norm", "model.py:10")
    assert norm.origin_places == 1
    assert norm.origin_reason == "unknown for 1 of 3 kernels: no capture has these kernels in this order"
    places = build_origins(trace, KernelRowParams(event=norm.event)).rows
    assert [(row.operator, row.kernels) for row in places] == [("aten::native_layer_norm", 2), (None, 1)]


def test_places_of_replayed_kernels_are_those_of_their_capture() -> None:
    trace = two_replays()
    rows = rows_of_kind(trace, Kind.KERNEL)
    rows = rows[np.argsort(trace.events.start[rows])]
    found = {}
    for by in get_args(PlaceKind):
        codes, texts = program_places(trace, rows, by)
        found[by] = [texts[code] if code >= 0 else None for code in codes.tolist()]
    assert found["operator"] == [operator for operator, _, _ in LAYERS] * 2 + [None]
    assert found["module"] == [module for _, module, _ in LAYERS] * 2 + [None]
    assert found["line"] == [f"model.py({10 + n})" for n in range(4)] * 2 + [None]


def test_a_search_by_module_or_line_finds_kernels() -> None:
    trace = two_replays()

    def names(query: str) -> list[str]:
        rows = find_hits(trace, query, regex=False).rows
        return [trace.strings[int(trace.events.name[row])] for row in rows]

    assert names("module:linear") == ["gemm"] * 4
    assert names("line:model.py:13") == ["add_kernel"] * 2
    assert names("module:nothing") == []
    assert names("linear") == []  # without the prefix, names only


def test_operators_list_what_was_captured() -> None:
    times = replayed_operator_times(two_replays(), OperatorFilter())
    by_operator = {(each.operator, each.module): (each.kernels, each.ns) for each in times}
    assert by_operator[None, None] == (1, 8_000)
    assert by_operator["aten::mm", "Linear_1"] == (2, 16_000)
    filtered = replayed_operator_times(two_replays(), OperatorFilter(kernel="gemm"))
    assert {each.operator for each in filtered} == {"aten::mm"}


def test_a_filter_by_origin_keeps_launched_kernels_apart() -> None:
    trace = draw("""
    host cpu_op aten::mm 0 10
    host cuda_runtime cudaLaunchKernel 2 2 correlation=1
    gpu0 kernel gemm 5 10 correlation=1
    gpu0 kernel lost 20 10 correlation=2
    """)
    rows = rows_of_kind(trace, Kind.KERNEL)
    conditions = {"gemm": KernelFilter(origin="known"), "lost": KernelFilter(origin="unknown")}
    for name, condition in conditions.items():
        passing = filter_device_work(trace, rows, condition)
        assert [trace.strings[int(trace.events.name[row])] for row in passing] == [name]


@pytest.mark.skipif(not CASES.is_dir(), reason="TRACE_CORPUS holds no kernel_identity")
def test_a_compiled_region_unfolds_into_the_lines_of_the_program(tmp_path: Path) -> None:
    shutil.copytree(CASES / "compiled", tmp_path / "run", ignore=shutil.ignore_patterns("expected.json"))
    with torch_tb_profiler.open(str(tmp_path)) as log:
        run = log["run"]
        table = run.operators().to_dict()
        assert table["has_compiled"]
        region = next(row for row in table["rows"] if row["name"].startswith("Torch-Compiled Region"))
        unfolded = run.operators.origins(event=region["event"]).to_dict()
        plain = next(row for row in table["rows"] if row["name"] == "aten::empty_like")
        reason = run.operators.origins(event=plain["event"]).to_dict()["reason"]
    assert {row["how"] for row in unfolded["rows"]} == {"compile record"}
    lines = [line for row in unfolded["rows"] for line in row["lines"]]
    assert len(set(lines)) > 1 and all(line.rpartition(":")[0].endswith(".py") for line in lines)
    assert sum(row["ns"] for row in unfolded["rows"]) <= region["host_total_ns"]
    assert reason is not None


def test_operators_show_replays_where_no_operator_was_recorded() -> None:
    trace = replace(read(replay(KERNELS)), origin_records=OriginRecords(captures_of(capture())))
    assert operators_unavailable(trace) is None
    payload = build_operators(trace, OperatorsParams())
    assert (payload.rows, len(payload.replayed)) == ([], 4)
    headline = "aten::mm is the top replayed operator: 50% of the time of graph replays."
    assert plain(payload.headline) == headline
    unknown = read(replay(KERNELS))
    assert operators_unavailable(unknown) is not None  # nobody knows what it replays


def test_the_phase_of_a_replayed_kernel_is_that_of_its_capture() -> None:
    launches = capture()
    backward = host("cpu_op", "autograd::engine::evaluate_function: AddBackward0", 64, 22)
    trace = replace(read(replay(KERNELS)), origin_records=OriginRecords(captures_of([*launches, backward])))

    def operators(phase: str) -> list[str | None]:
        return [each.operator for each in replayed_operator_times(trace, OperatorFilter(phase=phase))]

    assert operators("backward") == ["aten::add"]
    assert sorted(map(str, operators("forward"))) == ["aten::mm", "aten::mm", "aten::native_layer_norm"]
    assert operators("data") == []
    with pytest.raises(NotFoundError, match="there is no phase 'warm-up'"):
        operators("warm-up")
