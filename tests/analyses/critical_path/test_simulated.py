"""What a change is said to bring against what it brings, on programs whose truth a simulator knows."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from tests.analyses.critical_path.simulator import Knobs, simulate
from tests.support.examples import examples
from tests.support.traces import read
from torch_tb_profiler.analyses.critical_path.slack import slack
from torch_tb_profiler.analyses.schedule.path import PathSegmentKind, critical_path
from torch_tb_profiler.analyses.schedule.step_spans import recorded_spans, step_spans
from torch_tb_profiler.analyses.schedule.what_if import (
    REDUCTION_PERCENTS,
    parse_target,
    replayed_durations,
    sync_names,
    what_if_curves,
    what_if_step_time,
)
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.model.schedule.replay import replay
from torch_tb_profiler.model.schedule.schedule import schedule
from torch_tb_profiler.model.trace import Trace

SEEDS = range(40)

CHANGES = [
    (Knobs(data=0), "data_loading", 100),
    (Knobs(data=0.5), "data_loading", 50),
    (Knobs(kernel=0.5), "device", 50),
    (Knobs(kernel=1.5), "device", -50),
    (Knobs(communication=1e-9), "communication", 100),
    (Knobs(communication=2), "communication", -100),
    (Knobs(mul=0.5), "operator:aten::mul", 50),
    (Knobs(host=0.5, data=0.5), "host", 50),
    (Knobs(sync=False), "sync:aten::_local_scalar_dense", 100),
]


def simulate_program(seed: int) -> Trace:
    return read(simulate(seed)[0])


def recorded_time(trace: Trace) -> int:
    """Return the time from the first step's begin to the last one's end."""
    spans = recorded_spans(trace)
    return int(spans.end[0, -1] - spans.begin[0, 0])


def test_what_a_change_brings_is_foreseen() -> None:
    errors: list[float] = []
    seeds = SEEDS[: examples(len(SEEDS))]
    for seed in seeds:
        trace, now = simulate_program(seed), simulate(seed)[1]
        assert recorded_time(trace) == pytest.approx(now, abs=2_000)
        for knobs, spelled, percent in CHANGES:
            try:
                target = parse_target(trace, spelled)
            except NotFoundError:
                continue
            foreseen = int(replayed_durations(trace, [(target, percent)]).sum())
            errors.append(abs(foreseen - simulate(seed, knobs)[1]) / now)
    assert len(errors) > 6 * len(seeds)
    assert float(np.median(errors)) < 0.0001
    assert float(np.percentile(errors, 90)) < 0.0005
    assert max(errors) < 0.01


@pytest.mark.parametrize("seed", SEEDS[:20])
def test_a_curve_begins_at_the_recorded_step_never_rises_and_is_convex(seed: int) -> None:
    trace = simulate_program(seed)
    targets = "host", "device", "operator:aten::mul"
    for target, times in zip(targets, what_if_curves(trace, targets).tolist(), strict=True):
        assert times[0] == recorded_spans(trace).mean_ns[0]
        assert (np.diff(times) <= 0).all()
        cases = [(parse_target(trace, target), percent) for percent in REDUCTION_PERCENTS]
        gains = np.diff(replayed_durations(trace, cases).sum(axis=1))
        assert (gains <= 0).all()
        assert (np.diff(gains) >= -1_000 * recorded_spans(trace).end.shape[1]).all()  # rounding of each point
    assert what_if_step_time(trace, "host", 0) == recorded_spans(trace).mean_ns[0]


@pytest.mark.parametrize("seed", SEEDS[:20])
def test_the_path_tiles_every_step(seed: int) -> None:
    trace = simulate_program(seed)
    path, spans = critical_path(trace), recorded_spans(trace)
    for step, (begin, end) in enumerate(zip(spans.begin[0], spans.end[0], strict=True)):
        mine = path.step == step
        assert path.begin[mine][0] == begin
        assert path.end[mine][-1] == end
        assert (path.begin[mine][1:] == path.end[mine][:-1]).all()
    assert (path.end > path.begin).all()


@pytest.mark.parametrize("seed", SEEDS[:20])
def test_the_path_has_no_slack_and_nothing_has_less(seed: int) -> None:
    trace = simulate_program(seed)
    path, room = critical_path(trace), slack(trace)
    on_path = path.ref[path.kind == PathSegmentKind.DEVICE]
    assert (room.items[on_path] == 0).all()
    assert min(room.items.min(), room.points.min()) == 0


@pytest.mark.parametrize("seed", SEEDS[:20])
def test_an_item_may_take_its_slack_longer_and_not_1_us_more(seed: int) -> None:
    trace = simulate_program(seed)
    graph, room, chosen = schedule(trace), slack(trace).items, Random(seed)
    duration = graph.items.end - graph.items.start
    end = recorded_spans(trace).end[0, -1]
    items = [item for item in chosen.sample(range(len(duration)), 12) if room[item] < 2**50]
    assert items
    cases = np.repeat(duration[None], 2 * len(items), axis=0)
    for case, item in enumerate(items):
        cases[2 * case, item] += room[item]
        cases[2 * case + 1, item] += room[item] + 1_000
    steps = np.repeat(graph.step[None], len(cases), axis=0)
    later = step_spans(trace, replay(trace, steps, cases)).end[:, -1] - end
    assert later[0::2].tolist() == [0] * len(items)
    assert later[1::2].tolist() == [1_000] * len(items)


def test_a_synchronization_is_named_after_the_operator_around_it() -> None:
    trace = next(trace for trace in map(simulate_program, SEEDS) if (sync_names(trace) >= 0).any())
    names = {trace.strings[code] for code in sync_names(trace) if code >= 0}
    assert names == {"aten::_local_scalar_dense"}
