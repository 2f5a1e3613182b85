"""Python frames that are drawn where no operator runs."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.traces import draw
from torch_tb_profiler.analyses.tracks.lanes import lanes
from torch_tb_profiler.analyses.tracks.python_gaps import drawn_depth, frames_between_operators
from torch_tb_profiler.base.intervals import merge, total
from torch_tb_profiler.model.trace import Trace

LOOP = """
host  user_annotation  ProfilerStep#1    10  200
host  python_function  train              0  250
host  cpu_op           aten::mm          20   20
host  python_function  preprocess        40   80
host  python_function  decode            50   30
host  python_function  forward          125   45
host  cpu_op           aten::add        130   30
"""


def parts(trace: Trace) -> list[tuple[str, float, float, int]]:
    """Return name, start, end (us) and depth of what is drawn, by start."""
    found = frames_between_operators(trace)
    depth = np.repeat(found.depth, np.diff(found.bounds)).tolist()
    names = [trace.strings[code] for code in trace.events.name[found.rows].tolist()]
    times = zip((found.start / 1000).tolist(), (found.end / 1000).tolist(), strict=True)
    return sorted(
        ((name, start, end, level) for name, (start, end), level in zip(names, times, depth, strict=True)),
        key=lambda part: part[1],
    )


def test_a_frame_without_operators_is_drawn_whole_and_of_others_the_time_between() -> None:
    assert parts(draw(LOOP)) == [
        ("train", 0, 10, 0),
        ("train", 10, 20, 1),
        ("preprocess", 40, 120, 1),
        ("train", 120, 125, 1),
        ("forward", 125, 130, 1),
        ("forward", 160, 170, 1),
        ("train", 170, 210, 1),
        ("train", 210, 250, 0),
    ]


def test_a_frame_that_calls_one_operator_is_still_drawn() -> None:
    picture = "host python_function preprocess 0 100\nhost cpu_op aten::zeros 98 1\nhost cpu_op aten::mm 100 50"
    assert parts(draw(picture))[0] == ("preprocess", 0, 98, 0)


def test_calls_of_the_runtime_are_no_python() -> None:
    picture = "host python_function wait 0 100\nhost cuda_runtime cudaDeviceSynchronize 1 98"
    assert parts(draw(picture)) == [("wait", 0, 1, 0), ("wait", 99, 100, 0)]


def test_threads_with_nothing_but_frames_stay_folded() -> None:
    trace = draw(LOOP + "host2 python_function heartbeat 0 200")
    assert {name for name, *_ in parts(trace)} == {"train", "preprocess", "forward"}


def test_what_is_drawn_in_full_has_a_depth() -> None:
    trace = draw(LOOP)
    rows = {trace.strings[code]: row for row, code in enumerate(trace.events.name.tolist())}
    depths = {
        name: drawn_depth(trace, rows[name], False) for name in ("preprocess", "decode", "train", "aten::mm")
    }
    assert depths == {"preprocess": 1, "decode": None, "train": None, "aten::mm": 1}
    assert drawn_depth(trace, rows["decode"], True) == 3


def random_thread(generator: np.random.Generator) -> str:
    """Return nested slices of all kinds, down to five levels."""
    lines: list[str] = []

    def fill(begin: int, end: int, level: int, operators: bool) -> None:
        at = begin
        while level < 5 and end - at > 8:
            at += int(generator.integers(0, 6))
            length = int(generator.integers(3, max(4, end - at)))
            if at + length > end:
                break
            kind = (
                "cpu_op" if operators else str(generator.choice(["cpu_op", "python_function", "user_annotation"]))
            )
            lines.append(f"host {kind} s{len(lines)} {at} {length}")
            fill(at, at + length, level + 1, kind == "cpu_op")
            at += length

    fill(0, 400, 0, False)
    return "\n".join([*lines, "host cpu_op last 400 5"])


@pytest.mark.parametrize("seed", range(12))
def test_time_in_python_is_drawn_once_and_nothing_overlaps_on_a_lane(seed: int) -> None:
    """Law: operators and parts cover the time of both once; parts overlap no slice of their lane."""
    trace = draw(random_thread(np.random.default_rng(seed)))
    layout, found = lanes(trace, False), frames_between_operators(trace)
    kinds = [trace.strings[code] for code in trace.events.category.tolist()]
    operators = np.array([kind == "cpu_op" for kind in kinds])
    frames = np.array([kind == "python_function" for kind in kinds])
    start = trace.events.start
    end = start + trace.events.duration
    working = merge(start[operators | frames], end[operators | frames])
    busy = merge(start[operators], end[operators])
    assert int((found.end - found.start).sum()) == total(working) - total(busy)
    depth = np.repeat(found.depth, np.diff(found.bounds)).tolist()
    for i, (begin, finish) in enumerate(zip(found.start.tolist(), found.end.tolist(), strict=True)):
        for lane in np.flatnonzero(layout.depth >= depth[i]).tolist():
            members = slice(layout.bounds[lane], layout.bounds[lane + 1])
            overlaps = (layout.start[members] < finish) & (layout.end[members] > begin)
            assert not overlaps.any()
