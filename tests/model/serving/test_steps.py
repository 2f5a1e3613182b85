"""An iteration is the step of an engine's trace, on every view."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.support.serving import Workload, serve
from tests.support.traces import draw
from torch_tb_profiler.model.serving.iterations import serving_iterations
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.overview.build import build as overview


def test_iterations_are_steps_that_tile_the_time_in_which_requests_run() -> None:
    trace, truth = serve(Workload())
    spans = steps(trace)
    assert spans.recorded and spans.complete.all()
    assert spans.names == tuple(map(str, range(len(truth.iterations))))
    found = serving_iterations(trace)
    assert found is not None and spans.ends.tolist() == np.maximum(found.device_end, found.launch_end).tolist()
    running = np.array([each["decodes"] > 0 for each in truth.iterations])[1:]
    assert (spans.starts[1:][running] == spans.ends[:-1][running]).all()


def test_a_wait_for_requests_is_in_no_step() -> None:
    trace, truth = serve(Workload(lull=(20, 300_000)))
    spans = steps(trace)
    assert truth.idle["idle"] > 100_000
    assert (spans.ends - spans.starts).max() < 20_000_000


def test_the_profilers_own_steps_count_first() -> None:
    trace = draw("""
    host  user_annotation  ProfilerStep#4      0  100
    host  user_annotation  step[DECODE~bs=2]  10   30
    host  user_annotation  step[DECODE~bs=2]  50   30
    """)
    assert steps(trace).names == ("4",)


def test_the_overview_speaks_of_iterations_and_tokens() -> None:
    slow = replace(Workload(), faults=dict.fromkeys(range(9, 400, 9), ("scheduler", 6000)))
    payload = overview(serve(slow)[0], NoParams())
    assert plain(payload.headline).startswith("The engine generates ")
    assert plain(payload.headline).endswith("mostly while the scheduler prepares the next batch.")
    assert "Serving shows what an iteration of the engine costs" in plain(payload.explanation)
    assert "serving" in {phrase.link for phrase in payload.explanation}
