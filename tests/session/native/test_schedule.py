"""The functions in C for schedules say what those in Python say, on drawn and on random schedules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.model.schedule.test_blocking import full_queue, launches
from tests.model.schedule.test_replay import STEP
from tests.model.schedule.test_waits import BACKWARD
from tests.support.traces import draw
from torch_tb_profiler.analyses.critical_path.slack import slack
from torch_tb_profiler.analyses.schedule.causes import Cause, add_times_by_cause, split_by_state
from torch_tb_profiler.analyses.schedule.segments import idle_segments
from torch_tb_profiler.analyses.schedule.what_if import covered_between, host_time_targets
from torch_tb_profiler.base.intervals import Intervals
from torch_tb_profiler.ingest.compiled import ABSENT
from torch_tb_profiler.model.schedule import compiled
from torch_tb_profiler.model.schedule.compiled import (
    IdleGaps,
    ScheduleFunctions,
    ThreadTimes,
    use_schedule_functions,
)
from torch_tb_profiler.model.schedule.items import device_items
from torch_tb_profiler.model.schedule.replay import compiled_order, replay
from torch_tb_profiler.model.schedule.schedule import schedule
from torch_tb_profiler.model.trace import NO_CODE, Int32, Int64, Trace
from torch_tb_profiler.session.native.schedule import LIBRARY, load_schedule_functions


@pytest.fixture
def functions(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScheduleFunctions]:
    monkeypatch.setenv("TORCH_PROFILER_NATIVE", "1")
    found = load_schedule_functions()
    if found is None:
        pytest.skip(f"{LIBRARY.file_name} is {ABSENT}")
    yield found
    use_schedule_functions(None)


def random_picture(seed: int) -> str:
    """Return a step in which two threads launch on three streams, wait for them, and wait between the streams."""
    random = np.random.default_rng(seed)
    lines, free, correlation = [], [0, 0, 0], 0
    for thread, name in enumerate(("host", "host2")):
        now = thread * 3
        for _ in range(60):
            now += int(random.integers(1, 9))
            correlation += 1
            stream, roll = int(random.integers(3)), random.random()
            if roll < 0.15:  # the next launch waits for what runs on the other streams
                lines.append(f"{name} cuda_runtime cudaStreamWaitEvent {now} 1 correlation={1000 + correlation}")
                free[stream], now = max(free) + 2, now + 2
            if roll < 0.7:
                lines.append(f"{name} cuda_runtime cudaLaunchKernel {now} 2 correlation={correlation}")
                begin = max(free[stream], now + 3)
                free[stream] = begin + int(random.integers(1, 20))
                place = f"{begin} {free[stream] - begin} correlation={correlation} stream={stream + 7}"
                lines.append(f"gpu0 kernel k{correlation % 5} {place}")
                now += 2
            else:
                wait = max(max(free) - now, 1) + 1 if roll < 0.85 else 1
                call = "cudaDeviceSynchronize" if roll < 0.85 else "cudaEventQuery"
                lines.append(f"{name} cuda_runtime {call} {now} {wait} correlation={correlation}")
                now += wait
    lines.append("host user_annotation ProfilerStep#1 0 3000")
    lines.append("host user_annotation ProfilerStep#2 3000 100")
    return "\n".join(lines)


HANDED_OVER = f"""
{BACKWARD}
host   python_function  loss.backward           20   60
host   cpu_op           aten::optimizer         80   20
host   cuda_runtime     cudaLaunchKernel        85    5  correlation=2
gpu0   kernel           optimizer               95    5  correlation=2 stream=8
"""
"""The host waits in Python for the thread of the backward pass, which then counts instead."""

PICTURES = [STEP, BACKWARD, launches(12, 115), full_queue(300, 32), "host cpu_op aten::mm 0 10"]


@pytest.mark.parametrize("picture", [*PICTURES, *map(random_picture, range(12))])
def test_replays_slack_and_states_agree(functions: ScheduleFunctions, picture: str) -> None:
    trace = draw(picture)
    graph, random = schedule(trace), np.random.default_rng(1)
    duration = graph.items.end - graph.items.start
    factors = random.random((4, len(graph.step))), random.random((4, len(duration)))
    factors[0][0] = factors[1][0] = 1
    step, durations = (
        (share * values).astype(np.int64) for share, values in zip(factors, (graph.step, duration), strict=True)
    )
    removed = random.random((4, len(graph.edges.target))) < 0.3
    removed[0] = False
    windows = random_windows(trace, random)

    def results() -> list[Any]:
        other = draw(picture)  # nothing is cached of it
        times, allowed = replay(other, step, durations, removed), slack(other)
        assert (compiled_order(other) is not None) == (compiled.schedule_functions() is not None)
        parts = split_by_state(other, *windows)
        by_cause = np.ones((3, len(Cause)), np.int64)
        add_times_by_cause(other, *windows, np.arange(len(windows[0])) % 3, by_cause)
        of_replay = times.points, times.ends, allowed.points, allowed.items
        of_states = parts.window, parts.begin, parts.end, parts.row, parts.cause
        columns: tuple[Any, ...] = (*of_replay, *of_states, by_cause)
        return [[str(column.dtype), column.tolist()] for column in columns]

    in_python = results()
    use_schedule_functions(functions)
    assert results() == in_python
    assert in_python[0][1][0] == graph.points.time.tolist()


def idle_of_devices(picture: str) -> tuple[Any, ...]:
    """Return what the idle time of each device and stream is cut into, and the host's time in some of it."""
    trace = draw(picture)
    work = device_items(trace)
    places = {(device, None) for device in work.device.tolist()}
    places |= set(zip(work.device.tolist(), work.stream.tolist(), strict=True))
    found: list[Any] = []
    for device, stream in sorted(places, key=str):
        idle = idle_segments(trace, device, stream)
        columns = idle.begin, idle.end, idle.cause, idle.row, idle.gap, idle.step
        found += [[str(column.dtype), column.tolist()] for column in columns]
        part = (np.arange(len(idle.begin)) % 4 - 1).astype(np.int32)
        targets = host_time_targets(trace, Intervals(idle.begin, idle.end), part, [[0], [1, 2], []])
        found += [target.host.tolist() for target in targets]
    return tuple(found)


@pytest.mark.parametrize("picture", [*PICTURES, HANDED_OVER, *map(random_picture, range(12))])
def test_idle_time_agrees(functions: ScheduleFunctions, picture: str) -> None:
    in_python = idle_of_devices(picture)
    use_schedule_functions(functions)
    assert idle_of_devices(picture) == in_python


def test_states_that_a_gap_needs_must_be_there(functions: ScheduleFunctions) -> None:
    one, nothing = np.array([0]), np.empty(0, np.int64)
    none = nothing, nothing, nothing, nothing.astype(np.int32), nothing.astype(np.int8)
    state = np.array([5]), np.array([1, 2], np.int32), np.array([11, 2], np.int8)

    def cut(**changes: Any) -> list[list[int]]:
        given = IdleGaps(
            begin=one,
            late=one + 9,
            shift=0,
            thread=np.array([0], np.int32),
            partner=np.array([NO_CODE, NO_CODE], np.int32),
            states=[state, None],
            parts=(none, none),
            borders=np.array([0, 7, 7]),
            unspecific=(11,),
            unrecorded=13,
        )
        return [column.tolist() for column in functions.idle(given._replace(**changes))]

    # The state changes at 5, and at 7 two steps begin, of which the first is empty.
    assert cut() == [[0, 5, 7], [5, 7, 9], [1, 2, 2], [0, 0, 0], [0, 0, 2], [11, 2, 2]]
    for changes in (
        {"thread": np.array([1], np.int32)},
        {"thread": np.array([2], np.int32)},
        {"thread": np.array([-2], np.int32)},
        {"partner": np.array([1, NO_CODE], np.int32)},
        {"partner": np.array([2, NO_CODE], np.int32)},
    ):
        with pytest.raises(ValueError, match="no states"):
            cut(**changes)
    with pytest.raises(ValueError, match="shape"):
        cut(states=[(*state[:2], state[2][:1]), None])


def test_points_and_numbers_beyond_the_sums_do_not_reach_it(functions: ScheduleFunctions) -> None:
    times, starts, ends = np.array([0, 10, 20]), np.array([-5, 8]), np.array([3, 14])
    number, sums = np.array([1, 0], np.int32), np.zeros((2, 3), np.int64)
    functions.during(times, starts, ends, number, sums)
    assert sums.tolist() == [[0, 2, 4], [0, 3, 0]]
    with pytest.raises(ValueError, match="beyond"):
        functions.during(times, starts, ends, number + 1, sums)
    with pytest.raises(ValueError, match="beyond"):
        functions.during(np.append(times, 30), starts, ends, number, sums)
    with pytest.raises(ValueError, match="shape"):
        functions.during(times, starts, ends[:1], number, sums)


def test_slices_cover_time_once_and_nothing_beyond_the_columns_reaches_it(functions: ScheduleFunctions) -> None:
    start, duration = np.array([0, 2, 15, 40, 1]), np.array([10, 4, 10, -3, 50])
    rows, thread = np.arange(5, dtype=np.int32), np.array([0, 0, 0, 0, 1], np.int32)
    times = ThreadTimes(np.array([0, NO_CODE], np.int32), np.array([1, 8, 20, 50]), np.array([0, 4]))

    def cover(rows: Int32, times: ThreadTimes, thread: Int32 = thread) -> list[int] | None:
        found = functions.cover(rows, start, duration, thread, times)
        return None if found is None else found.tolist()

    assert cover(rows, times) == [0, 7, 7, 5]
    assert cover(rows[::-1].copy(), times) is None
    assert cover(rows + np.int32(1), times) is None
    assert cover(rows - np.int32(1), times) is None
    assert cover(rows, times, thread + np.int32(1)) is None
    with pytest.raises(ValueError, match="bounds"):
        cover(rows, times._replace(bounds=np.array([0, 5])))
    with pytest.raises(ValueError, match="threads of"):
        cover(rows, times, thread[:4])


def test_slices_out_of_order_are_covered_as_in_python(functions: ScheduleFunctions) -> None:
    trace = draw("""
    host   cpu_op  mm   40  20
    host   cpu_op  mm    0  30
    host   cpu_op  mm   10  35
    host2  cpu_op  mm    5  10
    """)
    rows = np.arange(4, dtype=np.int32)
    at = ThreadTimes(np.array([0, 1], np.int32), np.array([8_000, 50_000, 90_000, 0, 99_000]), np.array([0, 3, 5]))
    covered = covered_between(trace, rows, at).tolist()
    use_schedule_functions(functions)
    try:
        assert covered_between(trace, rows, at).tolist() == covered == [0, 42_000, 10_000, 0, 10_000]
        assert covered_between(trace, rows[1:], at).tolist() == [0, 37_000, 0, 0, 10_000]
    finally:
        use_schedule_functions(None)


def random_windows(trace: Trace, random: np.random.Generator) -> tuple[Int32, Int64, Int64]:
    """Return (thread, begin, end) of windows, some of them empty, or of no thread."""
    thread = random.integers(NO_CODE, len(trace.threads), 40).astype(np.int32)
    begin = random.integers(0, 400_000, 40)
    return thread, begin, begin + random.integers(-1_000, 90_000, 40)


def test_nodes_that_wait_for_each_other_have_no_order(functions: ScheduleFunctions) -> None:
    from msgspec.structs import replace

    graph = schedule(draw(STEP))
    assert functions.plan(graph) is not None
    target = graph.edges.target
    last = graph.items.call.argmax()
    # The point that launches the kernel waits for the kernel itself.
    circle = replace(
        graph.edges, target=np.full_like(target, graph.submission[last]), item=np.full_like(target, last)
    )
    assert functions.plan(replace(graph, edges=circle)) is None


def test_columns_of_another_length_do_not_reach_it(functions: ScheduleFunctions) -> None:
    graph = schedule(draw(STEP))
    runs, duration = functions.plan(graph), (graph.items.end - graph.items.start)[None]
    assert runs is not None
    with pytest.raises(ValueError, match="shape"):
        functions.replay(graph, runs, graph.step[None, :-1], duration, None)


def test_nodes_that_are_not_there_do_not_reach_it(functions: ScheduleFunctions) -> None:
    """It would read and write beyond its columns."""
    from msgspec.structs import replace

    graph = schedule(draw(random_picture(3)))
    edges, waits, points, items = graph.edges, graph.waits, len(graph.points), len(graph.items)
    assert len(edges.target) > 1 and len(waits.item) > 1 and functions.plan(graph) is not None

    def changed(column: Int64, value: int, at: int = -1) -> Int64:
        copy: Int64 = column.copy()
        copy[at] = value
        return copy

    wrong = [
        replace(graph, edges=replace(edges, target=changed(edges.target, points))),
        replace(graph, edges=replace(edges, target=changed(edges.target, -1, at=0))),
        replace(graph, edges=replace(edges, target=edges.target[::-1].copy())),
        replace(graph, edges=replace(edges, item=changed(edges.item, items))),
        replace(graph, edges=replace(edges, item=changed(edges.item, -1), point=changed(edges.point, points))),
        replace(graph, edges=replace(edges, item=changed(edges.item, -1), point=changed(edges.point, -1))),
        replace(graph, submission=changed(graph.submission, points)),
        replace(graph, waits=replace(waits, item=changed(waits.item, items))),
        replace(graph, waits=replace(waits, source=changed(waits.source, items))),
        replace(graph, waits=replace(waits, source=changed(waits.source, -1))),
        replace(graph, points=replace(graph.points, bounds=changed(graph.points.bounds, points + 1))),
        replace(graph, points=replace(graph.points, bounds=changed(graph.points.bounds, points + 1, at=1))),
    ]
    for number, other in enumerate(wrong):
        with pytest.raises(ValueError):
            functions.plan(other)
            pytest.fail(f"number {number} was planned")


def test_states_that_are_not_there_do_not_reach_it(functions: ScheduleFunctions) -> None:
    one = np.array([0])
    times, row, cause = np.array([5]), np.array([1, 2], np.int32), np.array([1, 2], np.int8)
    parts = functions.split(one, one, one + 9, one, one + 1, times, row, cause)
    assert [column.tolist() for column in parts] == [[0, 0], [0, 5], [5, 9], [1, 2], [1, 2]]
    for first, last in ((0, 2), (-1, 1), (1, 0)):
        with pytest.raises(ValueError, match="states"):
            functions.split(one, one, one + 9, one + first, one + last, times, row, cause)
    with pytest.raises(ValueError, match="shape"):
        functions.split(one, one, one + 9, one, one + 1, times, row[:1], cause)


def test_sums_by_number_and_cause_have_room_for_both(functions: ScheduleFunctions) -> None:
    one, sums = np.array([0]), np.zeros((2, 3), np.int64)
    times, cause = np.array([5]), np.array([1, 2], np.int8)
    functions.tally(one + 1, one, one + 9, one, one + 1, times, cause, sums)
    assert sums.tolist() == [[0, 0, 0], [0, 5, 4]]
    for number, last, causes in ((2, 1, cause), (-1, 1, cause), (0, 1, cause + np.int8(1)), (0, 2, cause)):
        with pytest.raises(ValueError):
            functions.tally(one + number, one, one + 9, one, one + last, times, causes, sums)
    with pytest.raises(ValueError, match="shape"):
        functions.tally(one, one, one + 9, one, one + 1, times, cause[:1], sums)
