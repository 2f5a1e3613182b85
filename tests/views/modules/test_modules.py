from __future__ import annotations

from typing import Any

import pytest

from tests.support.recordings import TRAINING
from tests.support.traces import draw
from tests.support.views import ask
from torch_tb_profiler.base.errors import NotFoundError, UsageError
from torch_tb_profiler.model.modules import modules
from torch_tb_profiler.views._shared.availability import modules_reason as unavailable
from torch_tb_profiler.views._shared.modules import MAX_DEPTH


def test_rows_are_a_tree_in_order_of_the_first_call() -> None:
    payload = ask(draw(TRAINING), "modules")
    (net,) = payload["rows"]
    (linear,) = net["children"]
    assert (net["name"], net["calls"], net["host_total_ns"]) == ("Net_0", 1, 100_000)
    assert (net["device_total_ns"], net["device_self_ns"]) == (117_000, 7_000)
    assert (net["forward_device_total_ns"], net["backward_device_total_ns"]) == (57_000, 60_000)
    assert (linear["host_mean_ns"], linear["host_share"]) == (40_000, 0.4)
    assert linear["device_share"] == pytest.approx(110 / 122)
    assert payload["outside"] == {"events": 1, "device_ns": 3_000}
    assert payload["unlinked"] == {"events": 1, "device_ns": 2_000}
    assert payload["device_ns"] == 122_000
    assert payload["reasons"].keys() == {"speed"}  # no shapes are recorded


def test_families_of_the_kernels_in_a_module_sum_to_its_device_time() -> None:
    payload = ask(draw(TRAINING), "modules")
    (net,) = payload["rows"]
    (linear,) = net["children"]
    product = {"family": "matrix product", "device_ns": 110_000}
    assert linear["families"] == [product]
    assert net["families"][0] == product
    assert sum(part["device_ns"] for part in net["families"]) == 117_000
    of_class = {each["name"]: each["families"] for each in payload["classes"]}
    assert of_class["Linear"] == [product]
    assert sum(part["device_ns"] for part in of_class["Net"]) == 7_000  # without the modules inside


def test_missing_fields_are_null_with_a_reason() -> None:
    scripted = {"Module Hierarchy": "TOP(C)::forward.A0(A)::forward."}
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0.0, "dur": 8.0}
    payload = ask(draw("", {**event, "args": scripted}), "modules")
    (top,) = payload["rows"]
    (inner,) = top["children"]
    assert (top["host_total_ns"], inner["host_total_ns"], inner["operators"]) == (8_000, 8_000, 1)
    null = {field for field, value in inner.items() if value is None}
    assert null == {"calls", "host_self_ns", "host_mean_ns", "module_id", "device_share", "speed"}
    assert null < payload["reasons"].keys()


def test_the_reason_names_the_option_to_set() -> None:
    assert "with_stack=True" in str(unavailable(draw("host cpu_op aten::mm 0 10")))
    assert "nn.Module" in str(unavailable(draw("host python_function main.py(1):~f 0 10")))


def test_a_very_deep_model_is_cut_off_and_not_refused() -> None:
    deep = "\n".join(f"host python_function nn.Module:~M_{i} {i} {2000 - 2 * i}" for i in range(900))
    payload = ask(draw(deep), "modules")
    depth, rows = 0, payload["rows"]
    while rows:
        depth, rows = depth + 1, rows[0]["children"]
    assert depth == MAX_DEPTH


def test_flame_frames_refer_to_their_parent() -> None:
    flame = ask(draw(TRAINING), "modules/flame", time="device")
    assert flame["total_ns"] == 117_000
    assert [(frame["name"], frame["kind"], frame["parent"]) for frame in flame["frames"]] == [
        ("Net_0", "module", None),
        ("Linear_0", "module", 0),
        ("aten::linear", "operator", 1),
        ("backward", "backward", 1),
    ]
    with pytest.raises(UsageError, match="'wall'"):
        ask(draw(TRAINING), "modules/flame", time="wall")


def test_calls_of_a_module_are_listed_longest_first() -> None:
    again = "\nhost  python_function  nn.Module:~Net_0  800  150  Python module id=0"
    calls = ask(draw(TRAINING + again), "modules/instances", place=0)
    assert calls["path"] == ["Net_0"]
    assert [(call["start_ns"], call["duration_ns"], call["device_ns"]) for call in calls["rows"]] == [
        (800_000, 150_000, 0),
        (0, 100_000, 57_000),
    ]
    page = ask(draw(TRAINING + again), "modules/instances", place=0, first=1, limit=1)
    assert (page["total"], len(page["rows"])) == (2, 1)
    with pytest.raises(NotFoundError, match="no module 9"):
        ask(draw(TRAINING), "modules/instances", place=9)


def test_a_place_beyond_the_last_module_is_refused() -> None:
    places = len(modules(draw(TRAINING)).names)
    assert ask(draw(TRAINING), "modules/instances", place=places - 1)["total"] > 0
    with pytest.raises(NotFoundError, match=f"no module {places}"):
        ask(draw(TRAINING), "modules/instances", place=places)


def level(payload: Any) -> list[tuple[str, int]]:
    return [(row["name"], row["children"]) for row in payload["rows"]]


def test_the_call_tree_opens_level_by_level() -> None:
    trace = draw(TRAINING)
    top = ask(trace, "modules/calls", thread="1/1")
    assert level(top) == [("nn.Module: Net_0", 3), ("cudaLaunchKernel", 0)]
    net = top["rows"][0]
    assert (net["self_ns"], net["device_ns"], net["kind"], net["module"]) == (45_000, 57_000, "python", "Net_0")
    inside = ask(trace, "modules/calls", parent=net["event"])
    assert level(inside) == [("aten::view", 1), ("nn.Module: Linear_0", 1), ("cudaLaunchKernel", 0)]
    assert inside["thread"] == "1/1"
    page = ask(trace, "modules/calls", parent=net["event"], first=1, limit=1)
    assert (page["total"], level(page)) == (3, [("nn.Module: Linear_0", 1)])
    assert (top["longest"], inside["longest"], page["longest"]) == (0, 1, 1)  # in the level, not in the page
    assert ask(trace, "modules/calls", parent=inside["rows"][2]["event"])["longest"] is None
    assert {thread["thread"] for thread in top["threads"]} == {"1/1", "1/2"}


def test_unknown_threads_calls_and_limits_are_refused() -> None:
    trace = draw(TRAINING)
    with pytest.raises(UsageError, match="no thread '9/9'"):
        ask(trace, "modules/calls", thread="9/9")
    with pytest.raises(NotFoundError, match="is not a call"):
        ask(trace, "modules/calls", parent=12)
    with pytest.raises(UsageError, match="limit"):
        ask(trace, "modules/calls", limit=-1)


def test_calls_that_overlap_without_nesting_are_listed_too() -> None:
    trace = draw("""
    host  python_function  nn.Module:~Net_0    0  100
    host  user_annotation  region             50  100
    """)
    assert level(ask(trace, "modules/calls")) == [("nn.Module: Net_0", 0), ("region", 0)]
