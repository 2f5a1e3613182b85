"""Which operator takes most of the time of host operators, and when none may be named."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from tests.analyses.overview.advice_traces import steps
from tests.support.traces import draw
from torch_tb_profiler.analyses.overview.dominant_frames import main_operator
from torch_tb_profiler.model.trace import NO_CODE


def find_operator(*lines: str) -> tuple[str, int] | None:
    found = main_operator(draw("\n".join((steps(1), *lines))))
    return None if found is None else (found.name, int((found.during.ends - found.during.starts).sum()))


def test_the_deepest_operator_of_more_than_half_of_the_time_is_named() -> None:
    outer, inner = "host cpu_op aten::linear 0 8000", "host cpu_op aten::addmm 100 {}"
    rest = "host cpu_op aten::add 8100 400"
    assert find_operator(outer, inner.format(7_000), rest) == ("aten::addmm", 7_000_000)
    assert find_operator(outer, inner.format(4_201), rest) == ("aten::addmm", 4_201_000)
    assert find_operator(outer, inner.format(4_200), rest) == ("aten::linear", 8_000_000)


def test_many_short_calls_of_one_name_count_together() -> None:
    calls = [f"host cpu_op aten::add {20 * i} 10" for i in range(300)]
    others = [f"host cpu_op aten::{name} {6_000 + 1_000 * i} 900" for i, name in enumerate(("mm", "bmm", "mv"))]
    assert find_operator(*calls, *others) == ("aten::add", 3_000_000)
    assert find_operator(*calls[:200], *others) is None


def test_the_time_of_a_call_inside_is_none_of_operators() -> None:
    lines = ("host cpu_op aten::add 100 5500", "host cpu_op aten::sub 6000 3000")
    assert find_operator(*lines) == ("aten::add", 5_500_000)
    assert find_operator(*lines, "host cuda_runtime cudaMalloc 200 5000") == ("aten::sub", 3_000_000)


def test_an_operator_of_another_thread_is_not_named() -> None:
    """Its time counts: half of that of both is more than `add` has."""
    lines = ("host cpu_op aten::add 100 4000", "host cpu_op aten::sub 4200 1000")
    assert find_operator(*lines) == ("aten::add", 4_000_000)
    assert find_operator(*lines, "host2 cpu_op aten::mm 100 9000") is None


def test_what_runs_outside_the_steps_does_not_count() -> None:
    assert find_operator("host cpu_op aten::add 1000 1000", "host cpu_op aten::mm 20000 9000") == (
        "aten::add",
        1_000_000,
    )


def test_an_operator_without_a_name_is_not_named() -> None:
    """Its time counts: more than half of it has no name."""
    for us, name in ((1_000, "aten::add"), (4_100, None)):
        trace = draw("\n".join((steps(1), "host cpu_op aten::add 100 4000", f"host cpu_op lost 4200 {us}")))
        names = trace.events.name
        lost = names == trace.strings.index("lost")
        trace = replace(trace, events=replace(trace.events, name=np.where(lost, NO_CODE, names)))
        found = main_operator(trace)
        assert (found and found.name) == name


def test_of_annotations_alone_no_operator_is_named() -> None:
    assert find_operator("host user_annotation forward 100 9000") is None
    assert find_operator("host user_annotation forward 100 9000", "host cpu_op aten::mm 200 4400") is None
