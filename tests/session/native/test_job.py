"""The functions in C for jobs say what those in Python say, on random columns and jobs."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from tests.support.jobs import Job, tensor_and_data_parallel
from tests.support.simulation.large_jobs import large_job
from tests.support.traces import draw
from torch_tb_profiler.analyses.distributed import compiled, replay
from torch_tb_profiler.analyses.distributed.compiled import (
    RecordedOperations,
    ReplayColumns,
    use_replay_functions,
)
from torch_tb_profiler.analyses.distributed.medians import (
    lower_medians,
    middle_entries,
    others_and_middles,
    others_medians,
    stable_sort_by_group,
)
from torch_tb_profiler.analyses.distributed.network import build_network
from torch_tb_profiler.analyses.distributed.order_matching import ordinals
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.analyses.distributed.work_windows import work_windows
from torch_tb_profiler.analyses.shared.grouping import count_pairs, dense_codes, group, stable_order
from torch_tb_profiler.base import intervals
from torch_tb_profiler.base.arrays import (
    cells_of_rows,
    highest_by_number,
    lowest_by_number,
    search_sorted,
    sums_by_number,
)
from torch_tb_profiler.base.compiled import column_functions, use_column_functions
from torch_tb_profiler.base.memo import Memo
from torch_tb_profiler.base.threads import lend_threads
from torch_tb_profiler.ingest.compiled import ABSENT
from torch_tb_profiler.model.kinds import (
    DEVICE_KINDS,
    HOST_KINDS,
    Kind,
    event_ends,
    event_intervals,
    event_spans,
    rows_named,
    rows_of_kind,
    step_marks,
)
from torch_tb_profiler.model.trace import ABSENT as ABSENT_TIME
from torch_tb_profiler.model.trace import NO_CODE, ArgColumn, ArgKind, Events, Int64, Trace, distinct_codes
from torch_tb_profiler.session.native.job import LIBRARY, JobFunctions, job_functions
from torch_tb_profiler.view import Members, NoParams
from torch_tb_profiler.views._shared.job.members import compare_members
from torch_tb_profiler.views.distributed.build import build

LENGTH = 5_000
"""Columns that are long enough for a call."""


@pytest.fixture
def functions(monkeypatch: pytest.MonkeyPatch) -> Iterator[JobFunctions]:
    monkeypatch.setenv("TORCH_PROFILER_NATIVE", "1")
    found = job_functions()
    if found is None:
        pytest.skip(f"{LIBRARY.file_name} is {ABSENT}")
    yield found
    use_column_functions(None)
    use_replay_functions(None)


@pytest.mark.parametrize("seed", range(8))
def test_columns_agree(functions: JobFunctions, seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 3_000))
    number = rng.integers(0, count, LENGTH).astype((np.int64, np.int32)[seed % 2])
    number[number == count // 2] = 0  # one number that doesn't occur
    values = rng.integers(-(2**62), 2**62, LENGTH)
    ordered = np.sort(rng.choice(values, LENGTH // 2))
    queries = np.sort(values) + rng.integers(-2, 3, LENGTH) if seed % 3 else values
    backwards = rng.random(LENGTH) < 0.2
    groups, ascending = group(number), np.sort(rng.integers(0, LENGTH, LENGTH)).astype(np.int32)
    equal = rng.integers(0, 20, LENGTH)

    def results() -> list[list[int]]:
        return [
            lowest_by_number(number, values, count).tolist(),
            highest_by_number(number, values, count).tolist(),
            dense_codes(number, number[::-1])[0].tolist(),
            ordinals(backwards, number, number % 2).tolist(),
            stable_order(number).tolist(),
            search_sorted(ordered, queries, "left").tolist(),
            search_sorted(ordered, queries, "right").tolist(),
            sums_by_number(number, values >> 20, count).tolist(),
            group(number).first.tolist(),
            count_pairs(groups, ascending, LENGTH).tolist(),
            stable_sort_by_group(number, equal, count).tolist(),
            others_medians(number, values, count).tolist(),
            others_medians(number // 100, equal, count).tolist(),
            middle_entries(number, values, count).tolist(),
            middle_entries(number // 100, equal, count).tolist(),
            others_and_middles(number // 100, equal, count)[1].tolist(),
            lower_medians(values, number, count).tolist(),
            intervals.totals_by_owner(number, equal, equal + 3, count).tolist(),
            intervals.totals_by_owner(number // 100, np.sort(equal), np.sort(equal) + equal % 4, count).tolist(),
        ]

    in_python = results()
    use_column_functions(functions.columns)
    assert column_functions(LENGTH) is not None and column_functions(10) is None
    assert results() == in_python


@pytest.mark.parametrize("seed", range(8))
def test_intervals_agree(functions: JobFunctions, seed: int) -> None:
    """In any order, empty, touching, within each other, and alone."""
    rng = np.random.default_rng(seed)
    sets, longest = [], int(rng.integers(1, 200))
    for count in (LENGTH, LENGTH // 3, 1):
        starts = rng.integers(-50_000, 50_000, count)
        if seed % 2:
            starts.sort()
        sets.append((starts, starts + rng.integers(-2, longest, count)))
    times = rng.integers(-60_000, 60_000, LENGTH)
    windows = times, times + rng.integers(-5, 5_000, LENGTH)

    def results() -> list[list[int]]:
        merged = [intervals.merge(*each) for each in sets]
        made = [*merged, intervals.union(*merged), *(intervals.union(each) for each in merged)]
        for one in merged:
            for other in merged:
                made += [intervals.intersect(one, other), intervals.subtract(one, other)]
        covered = [
            column
            for each in merged
            for column in (
                intervals.covered_time(each, *windows),
                intervals.covered_time_before(each, times),
                intervals.covered_time_between(each, np.sort(times)),
            )
        ]
        return [column.tolist() for column in (*(column for each in made for column in each), *covered)]

    in_python = results()
    use_column_functions(functions.columns)
    assert results() == in_python
    assert sum(map(len, in_python)) > LENGTH


@pytest.mark.parametrize("kind", ["int", "float", "text", "json"])
def test_arguments_and_codes_agree(functions: JobFunctions, kind: ArgKind) -> None:
    rng = np.random.default_rng(5)
    rows = np.flatnonzero(rng.random(LENGTH) < 0.5).astype(np.int32)
    values = rng.integers(0, 3, len(rows)).astype({"int": np.int64, "float": np.float64}.get(kind, np.int32))
    column = ArgColumn(kind, rows, values, ["1", "x", "2"])
    trace = replace(draw("host cpu_op aten::mm 0 10"), args={"key": column})
    queries = rng.permutation(LENGTH).astype(np.int32), np.arange(LENGTH, dtype=np.int32)
    codes = rng.integers(NO_CODE, 900, LENGTH).astype(np.int32)

    def results() -> list[str]:
        found: list[object] = [distinct_codes(codes), distinct_codes(codes.astype(np.int64))]
        found += [cells_of_rows(rows, codes[: len(rows)], wanted, NO_CODE).tolist() for wanted in queries]
        for wanted in queries:
            given, texts = trace.arg_codes("key", wanted)
            found += [
                trace.arg_int("key", wanted).tolist(),
                trace.arg_float("key", wanted).tolist(),
                given.tolist(),
                texts,
            ]
        return list(map(repr, found))

    in_python = results()
    use_column_functions(functions.columns)
    assert results() == in_python


@pytest.mark.parametrize("rows_beyond", [False, True])
def test_spans_of_events_agree(functions: JobFunctions, rows_beyond: bool) -> None:
    """Starts and durations may be anything or missing; rows before the first count from the end, as in numpy."""
    rng = np.random.default_rng(6)
    start, duration = (rng.integers(-(2**62), 2**62, LENGTH) for _ in range(2))
    start[rng.random(LENGTH) < 0.1] = ABSENT_TIME
    duration[rng.random(LENGTH) < 0.1] = ABSENT_TIME
    trace = drawn_events(start, duration)
    rows = rng.integers(-LENGTH if rows_beyond else 0, LENGTH, 2 * LENGTH).astype(np.int32)
    ends = event_ends(trace)

    def results() -> list[object]:
        spans = event_spans(trace, rows)
        return [*(column.tolist() for column in spans), *(each.tolist() for each in event_intervals(trace, rows))]

    in_python = results()
    assert in_python[:2] == [start[rows].tolist(), ends[rows].tolist()]
    use_column_functions(functions.columns)
    assert results() == in_python
    spans = functions.columns.spans(rows, start, duration)
    assert (spans is None) == rows_beyond
    assert functions.columns.intervals(rows, start, duration) is None  # they don't ascend
    assert functions.columns.spans(np.array([LENGTH], np.int32), start, duration) is None
    with pytest.raises(IndexError):
        event_spans(trace, np.full(LENGTH, LENGTH, np.int32))


@pytest.mark.parametrize("spread", [LENGTH // 10, 10 * LENGTH])
def test_intervals_of_events_in_order_agree(functions: JobFunctions, spread: int) -> None:
    rng = np.random.default_rng(spread)
    start, duration = np.sort(rng.integers(0, spread, LENGTH)), rng.integers(-2, 9, LENGTH)
    start[rng.random(LENGTH) < 0.1] = ABSENT_TIME
    trace, rows = drawn_events(start, duration), np.flatnonzero(rng.random(LENGTH) < 0.8).astype(np.int32)
    in_python = [each.tolist() for each in event_intervals(trace, rows)]
    assert 1 <= len(in_python[0]) < len(rows)
    found = functions.columns.intervals(rows, start, duration)
    assert found is not None and [each.tolist() for each in found] == in_python
    use_column_functions(functions.columns)
    assert [each.tolist() for each in event_intervals(trace, rows)] == in_python
    assert functions.columns.intervals(rows - rows[-1] - 1, start, duration) is None
    assert functions.columns.intervals(np.array([LENGTH], np.int32), start, duration) is None


def test_rows_by_kind_and_name_agree(functions: JobFunctions) -> None:
    """Of categories that are in the file in any order, some without a kind, and of events that are no slices."""
    rng = np.random.default_rng(7)
    trace = drawn_events(np.arange(LENGTH), np.full(LENGTH, 1))
    strings = ["cpu_op", "user_annotation", "kernel", "cuda_runtime", "other", "aten::mm", "ProfilerStep#1"]
    category, name = (rng.integers(NO_CODE, len(strings), LENGTH).astype(np.int32) for _ in range(2))
    phase = rng.choice(np.frombuffer(b"XXBiM", np.uint8), LENGTH)
    names = replace(trace.events, category=category, name=name, phase=phase)

    def results() -> list[list[int]]:
        other = replace(trace, events=names, strings=strings, _memo=Memo())
        found = [rows_of_kind(other, kind) for kind in Kind]
        found += [
            rows_of_kind(other, *DEVICE_KINDS),
            rows_of_kind(other, Kind.CPU_OP, Kind.ANNOTATION, Kind.KERNEL),
        ]
        found += [step_marks(other), rows_named(other, {"aten::mm", "kernel"}.__contains__, *HOST_KINDS)]
        assert all(each.dtype == np.int32 for each in found)
        return [each.tolist() for each in found]

    in_python = results()
    assert all(in_python[-4:])
    use_column_functions(functions.columns)
    assert results() == in_python
    rows = np.array([LENGTH - 1, LENGTH], np.int32)
    marked = np.ones(len(strings), np.bool_)
    assert functions.columns.named(rows, name, marked) is None
    assert functions.columns.named(-rows, name, marked) is None
    kinds, counts = np.array([3, 0, 3], np.int8), np.ones(3, np.bool_)
    assert functions.columns.select(kinds, counts, [3], 1).tolist() == [0]
    with pytest.raises(ValueError, match="not among the 3"):
        functions.columns.group(kinds, counts, 3)


def drawn_events(start: Int64, duration: Int64) -> Trace:
    """Return a trace of slices with these times."""
    zeros = np.zeros(len(start), np.int32)
    phase, ids = np.full(len(start), ord("X"), np.uint8), np.full(len(start), ABSENT_TIME)
    events = Events(phase, zeros, zeros, zeros, start, duration, ids)
    return replace(draw("host cpu_op aten::mm 0 10"), events=events)


def random_members(seed: int) -> Members[RankSummary]:
    """Return a job of ranks some of which are missing or late, or record other operations than the others."""
    rng = np.random.default_rng(seed)
    if seed % 2:
        members = large_job(8 * int(rng.integers(2, 9)), int(rng.integers(3, 9)))
        return Members([member for member in members if rng.random() < 0.9])
    size = 4 * int(rng.integers(1, 4))
    job = Job(
        size,
        tensor_and_data_parallel(size, 4),
        steps=int(rng.integers(2, 6)),
        straggler=int(rng.integers(size)),
        slow_us=float(rng.integers(5_000)),
        jitter_us=float(rng.integers(300)),
        sequence=bool(seed % 4),
        lost=frozenset([(0, 1)] if seed % 3 else []),
    )
    return job.members()


@pytest.mark.parametrize("seed", range(12))
def test_answers_about_jobs_are_the_same_bytes(
    functions: JobFunctions, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_python = msgspec.json.encode(build(random_members(seed), NoParams()))
    prepared: list[int] = []

    def prepare(columns: ReplayColumns) -> compiled.Replay:
        prepared.append(len(columns.previous))
        return functions.replay.prepare(columns)

    monkeypatch.setattr("torch_tb_profiler.base.compiled._MIN_LENGTH", 1)
    use_column_functions(functions.columns)
    use_replay_functions(functions.replay._replace(prepare=prepare))
    assert msgspec.json.encode(build(Members(random_members(seed)), NoParams())) == in_python
    assert prepared and prepared[0] > 0
    with ThreadPoolExecutor(4) as threads, lend_threads(threads):
        assert msgspec.json.encode(build(Members(random_members(seed)), NoParams())) == in_python


def test_replays_beside_each_other_have_rows_of_their_own(functions: JobFunctions) -> None:
    comparison = compare_members(Members(large_job(64, 30)))
    work = work_windows(comparison.job)
    use_replay_functions(functions.replay)
    job = replay.JobReplay(comparison.job, comparison.matching, comparison.split, work)
    rng = np.random.default_rng(0)
    scenarios = [replay.ReplayScenarios(rng.random((64, 8)) < 0.5) for _ in range(40)]
    in_turn = [job.replay(each, work).earlier for each in scenarios]
    with ThreadPoolExecutor(4) as threads:
        beside = threads.map(lambda each: job.replay(each, work).earlier, scenarios)
        assert all(np.array_equal(*each) for each in zip(in_turn, beside, strict=True))
    assert any(earlier.any() for earlier in in_turn)


@pytest.mark.parametrize("seed", range(12))
def test_networks_agree(functions: JobFunctions, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where ends are out of order, and stalls and slack anything."""
    comparison = compare_members(random_members(seed))
    given: list[RecordedOperations] = []

    def record(recorded: RecordedOperations) -> ReplayColumns:
        given.append(recorded)
        return build_network(recorded)

    monkeypatch.setattr(replay, "build_network", record)
    replay.JobReplay(comparison.job, comparison.matching, comparison.split, work_windows(comparison.job))
    rng = np.random.default_rng(seed)
    count = len(given[0].member)
    recorded = given[0]
    if seed % 3:
        recorded = recorded._replace(
            end=recorded.start + rng.integers(0, 40_000_000, count),
            slack=rng.integers(0, 20_000_000, count),
            stall=np.minimum(np.maximum(rng.integers(-30_000_000, 30_000_000, count), 0), recorded.start),
        )
    in_python = build_network(recorded)
    use_replay_functions(functions.replay)
    in_c = build_network(recorded)
    assert count and in_c.stall_run.any()
    for name, expected, found in zip(ReplayColumns._fields, in_python, in_c, strict=True):
        columns = (each if isinstance(each, tuple) else (each,) for each in (expected, found))
        for one, other in zip(*columns, strict=True):
            assert np.array_equal(one, other), name
    earlier = recorded._replace(start=recorded.start - 10**9, end=recorded.end - 10**9)
    assert build_network(earlier).bounds[-1] == count  # in Python, as is what begins before the trace


def test_operations_that_name_what_is_not_there_are_no_network(functions: JobFunctions) -> None:
    one, first = np.zeros(2, np.int64), np.zeros(2, np.int32)
    recorded = RecordedOperations(1, 1, first, one, one == 0, one, one + 5, one, one - 1, one, one)
    assert functions.replay.network(recorded).bounds.tolist() == [0, 1, 2]
    for changed, message in (
        ({"member": first + 1}, "one after the other"),
        ({"member": first - 1}, "one after the other"),
        ({"member": np.array([1, 0], np.int32), "ranks": 2}, "one after the other"),
        ({"instance": one + 1}, "a collective"),
        ({"instance": one - 1}, "a collective"),
        ({"previous": one + 2}, "a previous operation"),
        ({"previous": one - 2}, "a previous operation"),
        ({"stall": one[:1]}, "shape"),
        ({"compared": one[:1] == 0}, "shape"),
    ):
        with pytest.raises(ValueError, match=message):
            functions.replay.network(recorded._replace(**changed))


def test_numbers_beyond_a_column_do_not_reach_it(functions: JobFunctions) -> None:
    number, values = np.array([0, 3]), np.array([5, 5])
    for refused in (
        lambda: functions.columns.lowest(number, values, 3),
        lambda: functions.columns.highest(-number, values, 3),
        lambda: functions.columns.dense(number, 3),
        lambda: functions.columns.ordinals(number, 3),
        lambda: functions.columns.order(number, 3),
        lambda: functions.columns.sums(number, values, 3),
        lambda: functions.columns.first(number, 3),
        lambda: functions.columns.changes(number, values.astype(np.int32), 3),
        lambda: functions.columns.sort(number, values, 3),
        lambda: functions.columns.totals(number, values, values, 3),
        lambda: functions.columns.others(-number, values, 3),
        lambda: functions.columns.middles(number, values, 3),
        lambda: functions.columns.windows(number, number, number, 3),
        lambda: functions.columns.windows(-number, 0 * number, number, 3),
        lambda: functions.columns.windows(number, number - 2, number, 3),
    ):
        with pytest.raises(ValueError, match="not among the 3"):
            refused()
    with pytest.raises(ValueError, match="shape"):
        functions.columns.lowest(number, values[:1], 9)
    with pytest.raises(ValueError, match="shape"):
        functions.columns.merge(values, values[:1])
    with pytest.raises(ValueError, match="shape"):
        functions.columns.combine("union", (values, values), (values, values[:1]))
    with pytest.raises(ValueError, match="shape"):
        functions.columns.spans(number.astype(np.int32), values, values[:1])
    with pytest.raises(ValueError, match="shape"):
        functions.columns.pick(number, values[:1], number, np.zeros(2, np.int64))
    assert functions.columns.mark(np.array([-1, 0, 3], np.int32), 3).tolist() == [True, False, False]


def test_jobs_whose_columns_name_what_is_not_there_do_not_reach_it(functions: JobFunctions) -> None:
    one, none = np.zeros(1, np.int64), np.zeros(0, np.int64)
    first, nobody = one.astype(np.int32), none.astype(np.int32)
    job = ReplayColumns(
        ranks=1,
        bounds=np.array([0, 1]),
        stall_bounds=np.array([0, 0]),
        run_begins=one,
        number=one,
        previous=np.array([1], np.int32),
        slack=one,
        gap=one,
        waited=one,
        last_arrival=np.array([True]),
        stall_run=none,
        stall_length=none,
        member=(first, nobody, first),
        stalls=(first, nobody, first),
        until=(first, nobody, first),
        since=(first, nobody, first),
    )
    earlier, arrivals = functions.replay.prepare(job)(
        np.array([[True, False]]), None, [np.array([7]), none, np.array([9])]
    )
    assert (earlier.tolist(), arrivals.tolist()) == (
        [[9, 0]],
        [[0, 0]],
    )  # nothing came before, which limits arrivals
    for changed, message in (
        ({"previous": np.array([2])}, "not among"),
        ({"previous": np.array([2**32])}, "not among"),
        ({"member": (first + 1, nobody, first)}, "not among"),
        ({"member": (one + 2**32, nobody, first)}, "not among"),
        ({"stalls": (first, nobody, first + 1)}, "not among"),
        ({"stall_bounds": np.array([0, 1])}, "bounds"),
        ({"bounds": np.array([0, 2])}, "bounds"),
        ({"run_begins": np.array([1])}, "runs"),
        ({"waited": none}, "shape"),
    ):
        with pytest.raises(ValueError, match=message):
            functions.replay.prepare(job._replace(**changed))
    with pytest.raises(ValueError, match="shape"):
        functions.replay.prepare(job)(np.array([[True], [False]]), None, [one, none, one])
    saved = functions.replay.saved(one + 9, one + 2, one + 1, job)
    assert [each.tolist() for each in saved] == [[0], [], [0]]  # until the operation, and since it
    before = job._replace(since=(first - 1, nobody, first))
    assert functions.replay.saved(one + 9, one + 2, one + 1, before)[0].tolist() == [7]
    for until in (first + 1, first - 2):
        with pytest.raises(ValueError, match="a moment"):
            functions.replay.saved(one, one, one + 1, job._replace(until=(until, nobody, first)))
    for counts in (one, one + 2, np.array([2, -1])):
        with pytest.raises(ValueError, match="operations of the ranks"):
            functions.replay.saved(one, one, counts, job)
