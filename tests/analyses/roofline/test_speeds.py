"""Speeds of the rows of other tables: one step on an H100, whose figures are computed by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.model.work.operator_events import BF16, kernel, launch, operator
from tests.support.traces import read
from tests.support.views import ask, words
from torch_tb_profiler.analyses.roofline.speeds import Speed, operator_speeds, place_speeds
from torch_tb_profiler.model.trace import Trace

H100 = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 132, "totalGlobalMem": 85018279936}
MM = {"dims": [[1000, 1000], [1000, 1000]], "types": [BF16, BF16]}  # 2 GFLOP, 6 MB
ROOF_NS = 2e9 / 989.4e3


def module(name: str, start: float, duration: float, number: int) -> dict[str, Any]:
    return {
        "ph": "X", "cat": "python_function", "name": f"nn.Module: {name}", "pid": 1, "tid": 1, "ts": start,
        "dur": duration, "args": {"Python id": number, "Python module id": number},
    }  # fmt: skip


def test_a_row_of_one_call_has_a_speed() -> None:
    """The product of 2 GFLOP runs for 40 us."""
    trace = read(
        [operator("aten::mm", 12, 10, **MM), launch(14, 1), kernel("gemm", 40, 40, 1)], deviceProperties=[H100]
    )
    mm = np.flatnonzero(trace.events.name == trace.strings.index("aten::mm")).astype(np.int32)
    (found,) = operator_speeds(trace, mm, np.zeros(1, np.int64), 1)
    assert found is not None and found.flops_per_s == pytest.approx(2e9 / 40e-6)


def step(**inputs: Any) -> Trace:
    """Draw a linear that launches a product of 40 us, and a module that launches one of 10 us around it."""
    return read(
        [
            module("Net_0", 0, 100, 1),
            module("Linear_0", 5, 25, 2),
            operator("aten::linear", 10, 15), operator("aten::mm", 12, 10, **inputs),
            launch(14, 1), kernel("gemm", 40, 40, 1),
            operator("aten::mm", 40, 10, **inputs), launch(42, 2), kernel("gemm", 80, 10, 2),
            operator("lib::mystery", 60, 10), launch(62, 3), kernel("riddle", 90, 50, 3),
        ],
        deviceProperties=[H100],
    )  # fmt: skip


def test_operators_have_the_speed_of_their_own_work() -> None:
    rows = {row["name"]: row["speed"] for row in ask(step(**MM), "operators")["rows"]}
    product = rows["aten::mm"]
    assert product["flops_per_s"] == pytest.approx(4e9 / 50e-6)
    assert product["bytes_per_s"] == pytest.approx(12e6 / 50e-6)
    assert product["efficiency"] == pytest.approx(2 * ROOF_NS / 50_000)
    assert (product["bound"], product["reason"]) == ("compute", None)
    for name, why in (("aten::linear", "no device work of its own"), ("lib::mystery", "has no formula")):
        unknown = rows[name]
        assert [unknown[key] for key in ("flops_per_s", "bytes_per_s", "efficiency")] == [None] * 3
        assert unknown["bound"] == "unknown"
        assert why in unknown["reason"]


def test_kernels_have_the_work_of_their_calls() -> None:
    rows = {row["name"]: row["speed"] for row in ask(step(**MM), "kernels")["rows"]}
    assert rows["gemm"]["flops_per_s"] == pytest.approx(4e9 / 50e-6)
    assert rows["riddle"]["flops_per_s"] is None
    slow = ask(step(**MM), "kernels", operator="aten::linear")["rows"]
    assert slow == []  # it launched none itself


def test_modules_count_what_is_inside_them_and_classes_do_not() -> None:
    payload = ask(step(**MM), "modules")
    (net,) = payload["rows"]
    (linear,) = net["children"]
    assert net["speed"]["flops_per_s"] == pytest.approx(4e9 / 50e-6)
    assert linear["speed"]["flops_per_s"] == pytest.approx(2e9 / 40e-6)
    classes = {row["name"]: row["speed"]["flops_per_s"] for row in payload["classes"]}
    assert classes == {"Net": pytest.approx(2e9 / 10e-6), "Linear": pytest.approx(2e9 / 40e-6)}
    assert "has no formula" in net["speed"]["reason"]  # of part of its work
    assert linear["speed"]["reason"] is None


def test_the_tables_agree_with_the_roofline() -> None:
    trace = step(**MM)
    for slug, group_by in (("operators", "operator"), ("kernels", "kernel")):
        speeds = {row["name"]: row["speed"] for row in ask(trace, slug)["rows"]}
        for row in ask(trace, "roofline", group_by=group_by)["rows"]:
            assert speeds[row["name"]] == {key: row[key] for key in Speed.__struct_fields__}


@pytest.mark.parametrize("slug", ["operators", "kernels", "modules"])
def test_without_shapes_there_is_one_reason_and_no_model_is_asked(
    slug: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("work was modeled")

    monkeypatch.setattr("torch_tb_profiler.analyses.roofline.speeds.operator_work", never)
    payload = ask(step(), slug)
    assert all(row["speed"] is None for row in payload["rows"])
    assert "record_shapes=True" in words(payload["reasons"]["speed"])


def test_a_table_without_rows_or_places_has_no_speeds() -> None:
    none = np.empty(0, np.int32)
    assert operator_speeds(step(**MM), none, none.astype(np.int64), 0) == []
    assert place_speeds(step(**MM), np.full(len(step(**MM)), -1, np.int32), none) == []
