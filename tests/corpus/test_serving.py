"""Serving on the cases with known truth and on real traces of engines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.corpus import real_traces
from torch_tb_profiler.analyses.serving.cost import iteration_cost
from torch_tb_profiler.analyses.serving.idle import CAUSES, serving_times
from torch_tb_profiler.analyses.serving.stalls import serving_stalls
from torch_tb_profiler.analyses.serving.verdict import serving_verdict
from torch_tb_profiler.model.kinds import Kind, rows_of_kind
from torch_tb_profiler.model.serving.iterations import serving_iterations
from torch_tb_profiler.model.serving.labels import PHASES

pytestmark = real_traces.MARKS

REAL = {
    "tl_b300_qwen3moe_decode": ("SGLang", "decode", 16),
    "tl_mi300_deepseek_decode": ("SGLang", "decode", 16),
    "tl_mi300_sglang_decode": ("SGLang", "decode", 32),
    "tl_rocm_vllm_piecewise": ("vLLM", "mixed", 46),
    "tl_mi300_xdit_sd35": None,
    "tl_h100_qwen15": None,
}
CAUSE_OF_FAULT = {
    "scheduler_slow": "scheduler",
    "network_wait": "network",
    "sampling_host_slow": "sampling_sync",
    "prefill_blocks_decode": "prefill_blocks_decode",
}


def cases(corpus: Path) -> list[tuple[Path, dict[str, Any]]]:
    found = sorted((corpus / "serving").glob("*/expected.json"))
    if not found:
        pytest.skip("the corpus has no serving cases")
    return [(next(path.parent.glob("*.pt.trace.json.gz")), json.loads(path.read_bytes())) for path in found]


def test_iterations_phases_and_the_verdict_are_those_of_the_truth(corpus: Path) -> None:
    for path, truth in cases(corpus):
        trace = real_traces.read(path)
        found, verdict = serving_iterations(trace), serving_verdict(trace)
        assert found is not None and verdict is not None
        assert [PHASES[phase] for phase in found.phase] == [each["phase"] for each in truth["iterations"]], path
        assert verdict.bottleneck == truth["what_holds_it_back"], path


def test_costs_are_known_where_they_can_be_and_lie_in_their_intervals(corpus: Path) -> None:
    for path, truth in cases(corpus):
        cost = iteration_cost(real_traces.read(path))
        assert cost is not None
        rows = zip(cost.coefficients, truth["law_truth"].values(), truth["law_expected"].values(), strict=True)
        for coefficient, value, status in rows:
            assert (coefficient.value is not None) == (status == "known"), (path, coefficient)
            if coefficient.value is not None and coefficient.low is not None and coefficient.high is not None:
                assert coefficient.value == pytest.approx(1000 * value, rel=0.1), path
                assert coefficient.low <= 1000 * value <= coefficient.high, path


def test_idle_time_by_cause_within_a_tenth(corpus: Path) -> None:
    for path, truth in cases(corpus):
        times = serving_times(real_traces.read(path))
        assert times is not None
        mine = dict(zip(CAUSES, (times.idle.sum(0) / 1000).tolist(), strict=True))
        # Without scopes the scheduler leaves no trace.
        mine["scheduler"] += mine["host_unrecorded"]
        expected = truth["totals"]["gap_us_by_cause"]
        for cause, spent in expected.items():
            assert mine[cause] == pytest.approx(spent, abs=0.1 * sum(expected.values())), (path, cause)


def test_planted_faults_are_stalls_with_their_cause(corpus: Path) -> None:
    for path, truth in cases(corpus):
        stalls = serving_stalls(real_traces.read(path))
        for kind, cause in CAUSE_OF_FAULT.items():
            planted = {fault["iteration"] for fault in truth["faults"] if fault["kind"] == kind}
            found = {stall.iteration for stall in stalls if stall.cause == cause}
            assert found <= planted, (path, kind)
            assert len(found) >= 0.9 * len(planted), (path, kind)


@pytest.mark.parametrize("run", REAL)
def test_real_engines(corpus: Path, run: str) -> None:
    trace = real_traces.read(next((corpus / "traces" / run).glob("*.json*")))
    found, expected = serving_iterations(trace), REAL[run]
    if expected is None:
        assert found is None
        return
    assert found is not None
    assert (found.engine, PHASES[found.phase[0]], int(found.requests[0])) == expected and len(found) == 1


@pytest.mark.parametrize(
    ("run", "in_label_ns", "after_ns"),
    [
        ("tl_b300_qwen3moe_decode", 6_197_471, 92_833),
        ("tl_mi300_deepseek_decode", 8_005_772, 261_102),
        ("tl_mi300_sglang_decode", 9_765_437, 0),
        ("tl_rocm_vllm_piecewise", 156_008_506, 0),
    ],
)
def test_kernel_time_is_what_a_splitter_cuts_out_and_what_is_launched_after_the_label(
    corpus: Path, run: str, in_label_ns: int, after_ns: int
) -> None:
    """TraceLens' splitter takes the kernels whose calls begin in the label; sampling comes after it."""
    trace = real_traces.read(next((corpus / "traces" / run).glob("*.json*")))
    found = serving_iterations(trace)
    assert found is not None
    rows = rows_of_kind(trace, Kind.KERNEL)
    calls = rows_of_kind(trace, Kind.RUNTIME, Kind.DRIVER)
    called = dict(
        zip(trace.arg_int("correlation", calls).tolist(), trace.events.start[calls].tolist(), strict=True)
    )
    begins = np.array([called[each] for each in trace.arg_int("correlation", rows).tolist()])
    inside = (begins >= found.host_start[0]) & (begins <= found.host_end[0])
    length = trace.events.duration[rows]
    assert (int(length[inside].sum()), int(length[~inside].sum())) == (in_label_ns, after_ns)
    assert int(length[found.owner[rows] == 0].sum()) == in_label_ns + after_ns
