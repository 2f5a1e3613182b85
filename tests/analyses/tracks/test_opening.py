"""What a timeline opens with: the slices, wherever marks and counters lie."""

from __future__ import annotations

from tests.support.traces import draw
from torch_tb_profiler.analyses.tracks.extent import extent, opening_extent

WORK = "host cpu_op aten::mm 10 40\ngpu kernel gemm 60 30 stream=7"
SPAN = {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "PyTorch Profiler"}
MARK = {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 90_000}
USED = {"ph": "C", "name": "gpu memory", "pid": 1, "tid": 1, "ts": 80_000, "args": {"used": 5}}


def test_marks_counters_and_the_profilers_own_span_leave_the_work_its_room() -> None:
    trace = draw(WORK, {**SPAN, "ts": 0, "dur": 70_000}, MARK, USED)
    assert extent(trace)[:2] == (0, 90_000_000)
    assert opening_extent(trace)[:2] == (10_000, 90_000)


def test_a_recording_without_work_is_shown_whole() -> None:
    assert opening_extent(draw("", {**SPAN, "ts": 5, "dur": 20}, MARK)) == extent(
        draw("", {**SPAN, "ts": 5, "dur": 20}, MARK)
    )
    assert opening_extent(draw("host user_annotation a 5 0"))[:2] == (0, 1)


def test_a_slice_with_an_absurd_time_does_not_stretch_it() -> None:
    far = 30 * 24 * 3600 * 1_000_000
    assert opening_extent(draw(f"{WORK}\nhost cpu_op late {far} 10"))[:2] == (0, 80_000)
