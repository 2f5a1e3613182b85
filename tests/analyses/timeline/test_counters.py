from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.traces import draw
from torch_tb_profiler.analyses.timeline.counters import CounterSeries, all_series, merge_samples


def series(samples: list[tuple[int, int]]) -> CounterSeries:
    known = dict(samples)
    times = sorted(known)
    return CounterSeries(
        "", "x", None, None, "", np.array(times, np.int64), np.array([float(known[t]) for t in times])
    )


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 200), st.integers(-9, 9)), min_size=1, max_size=40),
    st.integers(-20, 200),
    st.integers(1, 120),
    st.integers(0, 6),
)
def test_no_peak_is_lost_and_means_are_exact(
    drawing: list[tuple[int, int]], begin: int, length: int, level: int
) -> None:
    counter, bucket, end = series(drawing), 2**level, begin + length
    samples = merge_samples(counter, begin, end, bucket)
    value = dict(zip(counter.times.tolist(), counter.values.tolist(), strict=True))
    held: dict[int, float] = {}  # the value at every ns, by the definition
    now = None
    for time in range(-64, 400):
        now = value.get(time, now)
        if now is not None:
            held[time] = now
    inside = [time for time in value if begin <= time < end]
    buckets = {time // bucket for time in inside}
    if begin in held:
        buckets.add(begin // bucket)
    assert (samples.time // bucket).tolist() == sorted(buckets)
    for i, number in enumerate(sorted(buckets)):
        # What the window shows of the bucket, and after a sample all of the bucket.
        first = max(number * bucket, begin) if i == 0 else number * bucket
        last_sample = max([time for time in inside if time // bucket == number], default=None)
        here = [held[time] for time in range(first, (number + 1) * bucket) if time in held and time < end]
        after = [value[last_sample]] if last_sample is not None else []
        if i or last_sample is None or begin % bucket == 0:
            assert samples.low[i] == min(here + after)
            assert samples.high[i] == max(here + after)
        assert samples.last[i] == held[min(end - 1, (number + 1) * bucket - 1)]


def test_the_mean_of_a_bucket_is_over_its_time() -> None:
    samples = merge_samples(series([(0, 1), (3, 0), (8, 5)]), 0, 16, 8)
    assert samples.mean.tolist() == pytest.approx([3 / 8, 5])


def test_what_held_before_the_first_sample_of_a_bucket_is_part_of_its_mean() -> None:
    """4 until 12, then 0 until 16: half of the second bucket each."""
    found = merge_samples(series([(0, 4), (12, 0)]), 0, 16, 8)
    assert found.mean.tolist() == pytest.approx([4, 2])
    assert (found.low.tolist(), found.high.tolist()) == ([4, 0], [4, 4])
    # A window that begins within a bucket still tells of all of it; before the first sample nothing is known.
    assert merge_samples(series([(0, 4), (12, 0)]), 10, 16, 8).mean.tolist() == pytest.approx([2])
    assert merge_samples(series([(12, 6)]), 8, 16, 8).mean.tolist() == pytest.approx([6])


def test_a_device_is_idle_until_its_first_kernel() -> None:
    trace = draw("""
    host  cpu_op  start      0    1
    gpu1  kernel  k1        90   20   device=1 stream=7
    gpu1  kernel  k2       100   20   device=1 stream=8
    """)
    (utilization,) = all_series(trace)
    assert (utilization.role, utilization.device) == ("utilization", 1)
    assert utilization.times.tolist() == [0, 90_000, 120_000]
    assert utilization.values.tolist() == [0, 1, 0]


def test_a_device_that_is_busy_from_the_start_was_never_idle() -> None:
    (utilization,) = all_series(draw("gpu1 kernel k 0 20 device=1 stream=7"))
    assert utilization.times.tolist() == [0, 20_000]
    assert utilization.values.tolist() == [1, 0]


def test_sm_efficiency_adds_up_to_one_at_most() -> None:
    kernels = [
        {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": tid, "ts": ts, "dur": dur,
         "args": {"device": 0, "stream": tid, "blocks per SM": blocks}}
        for tid, ts, dur, blocks in ((7, 10, 20, 0.5), (8, 20, 20, 0.7), (9, 50, 10, 0.1), (7, 70, 0, 9))
    ]  # fmt: skip
    trace = draw("host cpu_op start 0 1", *kernels)
    (efficiency,) = (counter for counter in all_series(trace) if counter.role == "sm_efficiency")
    assert efficiency.times.tolist() == [0, 10_000, 20_000, 30_000, 40_000, 50_000, 60_000]
    assert efficiency.values.tolist() == pytest.approx([0, 0.5, 1, 0.7, 0, 0.1, 0])


def test_all_series_of_the_files_own_counters() -> None:
    def counter(ts: float, name: str, pid: int = 1, **args: object) -> dict[str, object]:
        return {"ph": "C", "name": name, "pid": pid, "ts": ts, "args": args}

    trace = draw(
        "host cpu_op a 0 100",
        counter(1, "load", cpu0=1.5, cpu1=2),
        counter(2, "load", cpu0=3),
        counter(3, "load", pid=99, cpu0="7"),
        counter(3, "load", pid=99, cpu0="no number"),
        counter(4, "memory bytes", value=9),
    )
    assert {s.name: (s.group, s.unit, s.values.tolist()) for s in all_series(trace)} == {
        "load · cpu0": (0, "", [1.5, 3]),
        "load · cpu0, 99": (None, "", [7]),
        "load · cpu1": (0, "", [2]),
        "memory bytes": (0, "bytes", [9]),
    }
