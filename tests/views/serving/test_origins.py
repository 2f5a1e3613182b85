"""Kernels of an iteration by module and operator: those of replayed graphs have the origin of their capture."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.support.serving import Workload, serve
from tests.support.traces import draw
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.session import open_session
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.serving.origins import ServingOrigins, ServingOriginsParams, build_origins

SAMPLES = Path(__file__).parents[3] / "samples"


def test_kernels_of_replayed_graphs_are_those_of_a_layer() -> None:
    with open_session(str(SAMPLES), Settings(executor="serial", cache_dir="")) as session:
        answer = session.view("serving/origins", "simulated_graph_replay", wait=True)
    assert answer.payload is not None
    work = msgspec.json.decode(answer.payload, type=ServingOrigins)
    attention = {row.module for row in work.rows if row.family == "attention"}
    assert {f"Decoder_0/Layer_{i}" for i in range(8)} <= {(each or "").rpartition("/")[0] for each in attention}
    assert all(row.how == "capture" and row.operator for row in work.rows)
    assert work.phase == "decode" and work.known_ns == work.kernel_ns
    assert work.kernel_ns == pytest.approx(sum(row.time_ns for row in work.rows) + work.others_ns)
    first = work.rows[0]
    assert first.module is not None and f"in {first.module} takes " in plain(work.headline)


def test_an_origin_that_is_unknown_says_why() -> None:
    trace, truth = serve(Workload(requests=6))
    decodes = [each for each in truth.iterations if each["phase"] == "decode"]
    work = build_origins(trace, ServingOriginsParams())
    assert (work.phase, work.iterations, work.known_ns) == ("decode", len(decodes), 0.0)
    assert work.kernel_ns == pytest.approx(1000 * sum(each["busy"] for each in decodes) / len(decodes), rel=0.05)
    assert all(row.module is None and row.reason for row in work.rows)
    assert plain(work.headline).startswith("The origin of 100% is unknown: ")
    families = {row.family for row in work.rows}
    assert {"attention", "sampling"} <= families


def test_a_phase_that_is_not_there_is_named() -> None:
    mixed = build_origins(serve(Workload(requests=6))[0], ServingOriginsParams("mixed"))
    assert mixed.phase == "mixed" and mixed.iterations > 0
    decodes = draw("host  user_annotation  execute_context_0(0)_generation_4(4)  0  50")
    with pytest.raises(NotFoundError, match="no iteration is prefill only"):
        build_origins(decodes, ServingOriginsParams("prefill"))
