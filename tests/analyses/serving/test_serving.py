"""What the analyses say of an engine whose cost, faults and waits are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.serving import Workload, serve
from tests.support.traces import draw
from torch_tb_profiler.analyses.serving.advice import serving_advice
from torch_tb_profiler.analyses.serving.cost import COEFFICIENTS, iteration_cost, student_quantile
from torch_tb_profiler.analyses.serving.idle import CAUSES, serving_times
from torch_tb_profiler.analyses.serving.stalls import serving_stalls
from torch_tb_profiler.analyses.serving.summary import phase_summaries, serving_rates, weighted_quantile
from torch_tb_profiler.analyses.serving.verdict import serving_verdict
from torch_tb_profiler.model.trace import Trace

HEALTHY = Workload()
BLOCKING = Workload(prefill_first=True, budget=8192, prompts=(400, 7000), every=9000, law=(700, 0.9, 24, 0.028))
FULL = Workload(kv_capacity=4000, outputs=(100, 200), prompts=(200, 400), every=2000)
SLOW = Workload(faults=dict.fromkeys(range(9, 400, 9), ("scheduler", 6000)), lull=(20, 200_000))
SAMPLING = Workload(faults=dict.fromkeys(range(2, 400, 2), ("sampling", 2500)))
NETWORK = Workload(faults=dict.fromkeys(range(5, 400, 6), ("network", 8000)))
PREFIX = Workload(prefix=(0.6, 600))
LONG_PREFIX = Workload(prompts=(4100, 5000), prefix=(1.0, 4096))


def bottleneck(trace: Trace) -> str | None:
    verdict = serving_verdict(trace)
    assert verdict is not None
    return verdict.bottleneck


@pytest.mark.parametrize(
    "load",
    [HEALTHY, BLOCKING, PREFIX, LONG_PREFIX],
    ids=["mixed", "prefill first", "cached prefixes", "mostly cached"],
)
def test_the_law_is_found_and_lies_in_its_interval_as_often_as_it_says(load: Workload) -> None:
    inside = []
    for seed in range(100, 108):
        cost = iteration_cost(serve(replace(load, seed=seed))[0])
        assert cost is not None and cost.explained is not None and cost.explained > 0.97
        for coefficient, truth in zip(cost.coefficients, load.law, strict=True):
            assert coefficient.value == pytest.approx(1000 * truth, rel=0.1)
            assert coefficient.low is not None and coefficient.high is not None
            inside.append(coefficient.low <= 1000 * truth <= coefficient.high)
    assert np.mean(inside) >= 0.9


def test_without_kv_lengths_only_the_cost_of_a_prompt_token_is_known() -> None:
    cost = iteration_cost(serve(Workload(form="vllm"))[0])
    assert cost is not None
    known = [name for name, each in zip(COEFFICIENTS, cost.coefficients, strict=True) if each.value is not None]
    assert known == ["per_prompt_token"]
    assert cost.per_prompt_token.value == pytest.approx(420, rel=0.1)
    assert "KV cache" in (cost.fixed.reason or "")


def test_one_batch_size_tells_only_what_that_batch_costs() -> None:
    load = Workload(requests=16, every=0.001, prompts=(512, 512), outputs=(60, 60), budget=16384)
    cost = iteration_cost(serve(load)[0])
    assert cost is not None and cost.batch is not None and cost.batch[0] == 16
    assert cost.fixed.value is None and cost.per_request.value is None and cost.per_prompt_token.value is None
    assert "16 requests" in (cost.fixed.reason or "")


def test_few_iterations_have_no_law_and_no_verdict() -> None:
    trace = draw("host  user_annotation  step[DECODE~bs=2]  0  10")
    cost, verdict = iteration_cost(trace), serving_verdict(trace)
    assert cost is not None and cost.fixed.reason == "1 iteration is too few; record at least 12"
    assert verdict is not None and verdict.bottleneck is None
    rates = serving_rates(trace)
    assert rates is not None and rates.output is None and rates.window is None


def test_quantiles_of_students_t() -> None:
    assert student_quantile(0.975, 10) == pytest.approx(2.228, abs=0.005)
    assert student_quantile(0.975, 100) == pytest.approx(1.984, abs=0.001)


@pytest.mark.parametrize(
    "load", [SLOW, SAMPLING, NETWORK, BLOCKING], ids=["slow", "sampling", "network", "blocking"]
)
def test_idle_time_by_cause(load: Workload) -> None:
    trace, truth = serve(load)
    times = serving_times(trace)
    assert times is not None
    mine = dict(zip(CAUSES, (times.idle.sum(0) / 1000).tolist(), strict=True))
    total = sum(truth.idle.values())
    for cause, spent in truth.idle.items():
        assert mine[cause] == pytest.approx(spent, abs=0.05 * total), cause


def test_without_scopes_the_scheduler_is_not_recorded_rather_than_blamed() -> None:
    trace, truth = serve(replace(SLOW, scopes=False))
    times, verdict = serving_times(trace), serving_verdict(trace)
    assert times is not None and verdict is not None
    idle = dict(zip(CAUSES, times.idle.sum(0).tolist(), strict=True))
    assert idle["scheduler"] == 0 and idle["host_unrecorded"] > 0.1 * times.duration.sum()
    assert idle["idle"] == pytest.approx(1000 * truth.idle["idle"], rel=0.05) and not times.certain.all()
    assert verdict.bottleneck == "host_scheduler" and verdict.likely


@pytest.mark.parametrize(
    ("load", "verdict"),
    [
        (HEALTHY, "device"),
        (SLOW, "host_scheduler"),
        (SAMPLING, "sampling_on_host"),
        (NETWORK, "network"),
        (BLOCKING, "prefill_blocks_decode"),
        (FULL, "kv_cache_full"),
        (Workload(requests=12, every=200_000), "no_requests"),
        (PREFIX, "device"),
        (replace(FULL, prefix=(0.7, 150)), "kv_cache_full"),
        (replace(BLOCKING, prefix=(0.9, 6900)), "device"),  # what is cached blocks nobody
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_what_holds_the_engine_back(load: Workload, verdict: str) -> None:
    assert bottleneck(serve(load)[0]) == verdict


@pytest.mark.parametrize(
    ("load", "cause"), [(SLOW, "scheduler"), (SAMPLING, "sampling_sync"), (NETWORK, "network")]
)
def test_each_planted_fault_is_a_stall_and_nothing_else_is(load: Workload, cause: str) -> None:
    trace, truth = serve(load)
    last = len(truth.iterations) - (1 if cause == "sampling_sync" else 0)
    planted = {n for n in load.faults if n < last}
    stalls = serving_stalls(trace)
    assert {stall.iteration for stall in stalls if stall.cause == cause} == planted
    assert {stall.cause for stall in stalls} == {cause}


def test_a_prefill_stalls_only_requests_that_were_running() -> None:
    trace, truth = serve(BLOCKING)
    stalls = [stall for stall in serving_stalls(trace) if stall.cause == "prefill_blocks_decode"]
    typical = np.median([each["busy"] for each in truth.iterations if each["phase"] == "decode"])
    assert stalls and all(truth.iterations[stall.iteration]["busy"] > 3 * typical for stall in stalls)
    assert all(stall.requests for stall in stalls)
    alone = serve(replace(BLOCKING, requests=1))[0]
    assert not [stall for stall in serving_stalls(alone) if stall.cause == "prefill_blocks_decode"]


@pytest.mark.parametrize("load", [HEALTHY, PREFIX, LONG_PREFIX, replace(FULL, prefix=(0.7, 150))])
def test_rates_count_what_the_labels_count(load: Workload) -> None:
    """Prompt tokens that are in the KV cache aren't computed."""
    trace, truth = serve(load)
    rates = serving_rates(trace)
    assert rates is not None
    assert rates.output_tokens == sum(each["decodes"] for each in truth.iterations)
    assert rates.prompt_tokens == sum(each["prompt"] for each in truth.iterations)
    assert rates.between_tokens is not None and rates.between_tokens[0] <= rates.between_tokens[1]
    assert sum(each.iterations for each in phase_summaries(trace)) == len(truth.iterations)


def test_time_between_tokens_spans_the_prefills_between_two_decodes() -> None:
    step = "host  user_annotation  step[{}]  {}  {}"
    decodes = [step.format("DECODE~bs=2", start, 100) for start in (0, 100, 1200, 1300)]
    rates = serving_rates(draw("\n".join([*decodes, step.format("EXTEND~bs=1~toks=9", 200, 1000)])))
    assert rates is not None and rates.between_tokens == (100_000, 1_100_000)


def test_a_weighted_quantile_is_a_value_that_occurs() -> None:
    values, weights = np.array([3.0, 1.0, 2.0]), np.array([1, 1, 98])
    assert (weighted_quantile(values, weights, 0.5), weighted_quantile(values, weights, 0.995)) == (2.0, 3.0)


def test_advice_answers_the_bottleneck_first_and_its_gain_is_bounded() -> None:
    trace, _ = serve(BLOCKING)
    chunks = serving_advice(trace)[0]
    assert chunks.kind == "chunk_prefill" and chunks.chunk is not None and chunks.limit_ns is not None
    cost = iteration_cost(trace)
    assert cost is not None and cost.per_prompt_token.value is not None
    assert cost.per_prompt_token.value * chunks.chunk < chunks.limit_ns / 2
    assert cost.per_prompt_token.value * (chunks.chunk + 64) > chunks.limit_ns / 2
    for load, kind in ((SLOW, "overlap_host"), (FULL, "more_kv_cache"), (NETWORK, "network")):
        first = serving_advice(serve(load)[0])[0]
        assert first.kind == kind and first.gain_share is not None and 0 < first.gain_share < 1


@pytest.mark.parametrize("load", [HEALTHY, PREFIX, LONG_PREFIX])
def test_preparing_ahead_saves_at_most_all_waits_of_the_device_for_its_host(load: Workload) -> None:
    """With the next batch scheduled, prepared and launched while the device works, it never waits."""
    trace, truth = serve(load)
    advice = next(each for each in serving_advice(trace) if each.kind == "overlap_host")
    waits = sum(truth.idle[activity] for activity in ("scheduler", "sampling_sync", "launch"))
    most = 1000 * waits / len(truth.iterations)
    assert advice.gain_ns is not None and 0.97 * most <= advice.gain_ns <= 1.05 * most


def test_twice_the_requests_gain_what_the_fixed_cost_is() -> None:
    trace, _ = serve(HEALTHY)
    advice = next(each for each in serving_advice(trace) if each.kind == "larger_batch")
    assert advice.factor is not None and 1.1 < advice.factor < 2


@pytest.mark.parametrize("load", [FULL, replace(HEALTHY, requests=12, every=200_000)], ids=["full", "none wait"])
def test_no_more_requests_are_advised_without_room_for_them_or_when_none_wait(load: Workload) -> None:
    advised = {each.kind for each in serving_advice(serve(load)[0])}
    assert advised and "larger_batch" not in advised


def test_a_pause_before_a_prefill_is_no_wait_for_requests_while_others_run() -> None:
    step = "host  user_annotation  step[{}]  {}  {}"
    decodes = [step.format("DECODE~bs=2", 130 * i, 100) for i in range(8)]
    later = [step.format("EXTEND~bs=1~toks=9", 4000, 100)]
    for after, cause in ((3, "host_unrecorded"), (1, "idle")):
        last = step.format(f"DECODE~bs={after}", 4130, 100)
        times = serving_times(draw("\n".join([*decodes, *later, last])))
        assert times is not None
        idle = dict(zip(CAUSES, times.idle[8].tolist(), strict=True))
        assert idle[cause] == sum(idle.values()) > 2_000_000, cause


def test_no_token_is_waited_for_across_a_time_without_requests() -> None:
    rates = serving_rates(
        draw("""
        host  user_annotation  step[DECODE~bs=1]           0  100
        host  user_annotation  step[DECODE~bs=1]         100  100
        host  user_annotation  step[IDLE~bs=0]          3000   20
        host  user_annotation  step[EXTEND~bs=1~toks=9] 5200  100
        host  user_annotation  step[DECODE~bs=1]        5300  100
        """)
    )
    assert rates is not None and rates.between_tokens == (100_000, 100_000)


@pytest.mark.parametrize(("every", "cause", "verdict"), [(20, "launch", "launch"), (2, "kernel_gaps", "device")])
def test_short_pauses_count_toward_launching_only_if_the_device_waits_for_it(
    every: int, cause: str, verdict: str
) -> None:
    """The same kernels and pauses: once each is launched just before it begins, once all are far ahead."""
    lines = []
    for start in range(0, 9600, 800):
        lines.append(f"host  user_annotation  step[DECODE~bs=2]  {start}  {40 * every}")
        for i in range(40):
            launch, kernel, number = start + every * i, start + 12 + 20 * i, 40 * start + i + 1
            lines.append(f"host  cuda_runtime  cudaLaunchKernel  {launch}  1  correlation={number}")
            lines.append(f"gpu0  kernel  gemm  {kernel}  6  correlation={number}")
    trace = draw("\n".join(lines))
    times = serving_times(trace)
    assert times is not None
    idle = dict(zip(CAUSES, times.idle.sum(0).tolist(), strict=True))
    assert idle[cause] >= 12 * 36 * 14_000 and bottleneck(trace) == verdict


@pytest.mark.parametrize(("share", "stall"), [("network", "network"), ("scheduler", "host_scheduler")])
def test_one_stall_does_not_speak_for_all_iterations(share: str, stall: str) -> None:
    """It takes more time than all else together; the others are those of a healthy engine."""
    trace, truth = serve(replace(HEALTHY, faults={20: (share, 300_000)}))
    verdict, healthy = serving_verdict(trace), serving_verdict(serve(HEALTHY)[0])
    assert verdict is not None and healthy is not None
    assert (verdict.bottleneck, [(each.bottleneck, each.rows) for each in verdict.once]) == (
        "device",
        [(stall, (20,))],
    )
    assert verdict.once[0].lost_ns == pytest.approx(300_000_000, rel=0.01)
    assert verdict.lost_share == pytest.approx(healthy.lost_share, rel=0.05)
    assert healthy.once == ()
    typical = {each.kind: each.gain_share for each in serving_advice(serve(HEALTHY)[0])}
    assert {each.kind: each.gain_share for each in serving_advice(trace)} == pytest.approx(typical, rel=0.2)


@pytest.mark.parametrize(("count", "bottleneck"), [(4, "device"), (5, "host_scheduler")])
def test_a_stall_in_a_twentieth_of_the_iterations_is_of_these(count: int, bottleneck: str) -> None:
    faults = {10 * number: ("scheduler", 60_000.0) for number in range(1, count + 1)}
    trace, truth = serve(replace(HEALTHY, faults=faults))
    verdict = serving_verdict(trace)
    assert verdict is not None and verdict.bottleneck == bottleneck and len(truth.iterations) in range(80, 100)
    assert [each.iterations for each in verdict.once] == ([tuple(faults)] if bottleneck == "device" else [])


def test_handling_tokens_stalls_the_iteration_that_sampled_them() -> None:
    verdict = serving_verdict(serve(replace(HEALTHY, faults={20: ("sampling", 300_000)}))[0])
    assert verdict is not None
    assert [(each.rows, each.iterations) for each in verdict.once] == [((21,), (20,))]


def test_a_loss_spread_over_the_iterations_is_of_none_of_them() -> None:
    """Without the largest it is just below what is notable."""
    for time in np.linspace(100, 900, 33).tolist():
        trace, _ = serve(replace(HEALTHY, faults=dict.fromkeys(range(400), ("scheduler", float(time)))))
        verdict = serving_verdict(trace)
        assert verdict is not None and verdict.once == ()
