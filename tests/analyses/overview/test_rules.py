"""Each case of each rule has three traces: one where it applies, a near miss, and one that is no matter of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.analyses.overview.advice_traces import BACKWARD, get_advice, work
from tests.analyses.overview.rule_drawings import (
    Document,
    cpu_optimizer,
    offloaded,
    picture,
    reading,
    reducing,
    serial_copy,
)
from tests.analyses.overview.rule_traces import RULES
from tests.support.traces import draw, read_bytes
from torch_tb_profiler.analyses.overview import kernel_rules
from torch_tb_profiler.analyses.overview.advice import advice
from torch_tb_profiler.analyses.overview.finding import MIN_GAIN_SHARE, no_advice_reason
from torch_tb_profiler.analyses.overview.gains import measure_gains
from torch_tb_profiler.model.health import is_truncated
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.views.overview.rule_words import RULE_WORDS


def list_advice(document: Document) -> list[tuple[str, str]]:
    """Return (id, case) of all advice; what is drawn can be advised on."""
    trace = read_bytes(json.dumps(document).encode())
    assert no_advice_reason(trace) is None and not is_truncated(trace.health)
    found = advice(trace)
    assert all(each.gain_share is None or each.gain_share >= MIN_GAIN_SHARE for each in found)
    return [(each.finding.id, each.finding.case) for each in found]


def leaves(value: Any, path: tuple[object, ...] = ()) -> Iterator[tuple[tuple[object, ...], object]]:
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(each, (*path, key))
    else:
        yield path, value


def test_every_case_that_has_words_has_three_traces() -> None:
    """And every rule has words: tests/views/overview/test_advice.py."""
    assert set(RULES) == set(RULE_WORDS)


@pytest.mark.parametrize("rule", RULES, ids=" ".join)
def test_a_rule_applies_nearly_applies_and_does_not(rule: tuple[str, str]) -> None:
    three = RULES[rule]
    assert rule in list_advice(three.applies)
    assert rule not in list_advice(three.nearly)
    assert rule not in list_advice(three.not_at_all)


@pytest.mark.parametrize("rule", RULES, ids=" ".join)
def test_a_near_miss_differs_in_one_value(rule: tuple[str, str]) -> None:
    applies, nearly = (dict(leaves(each)) for each in RULES[rule][:2])
    assert applies.keys() == nearly.keys()
    assert len([path for path in applies if applies[path] != nearly[path]]) == 1


@pytest.mark.parametrize(
    ("rule", "trace", "gained", "limit"),
    [
        # Of 3 ms of optimizer, eight calls of 90 us are the pass over the parameters that any optimizer makes.
        ("optimizer_on_cpu", cpu_optimizer(8), 3_000, 3_000),
        # Of eight collectives the first stays, and of the others what their 2000 bytes take at 4 bytes per ns,
        # or nothing on links of any speed.
        ("small_collectives", reducing(8, 1000), 7 * (100 - 0.5), 7 * 100),
        ("small_collectives", reducing(16, 1000, us=50), 15 * (50 - 0.5), 15 * 50),
        # A quarter of a megabyte takes 131 us at 4 bytes per ns, and 0.6 us on the links of one node.
        ("small_collectives", reducing(8, 262_144, us=150), 7 * (150 - 131), 7 * 150),
    ],
)
def test_what_remains_of_the_work_is_no_gain(rule: str, trace: Document, gained: float, limit: float) -> None:
    found = get_advice(read_bytes(json.dumps(trace).encode()), rule)
    assert found is not None and found.gain is not None
    assert found.gain.measured_ns / 1_000 == pytest.approx(gained, abs=1)
    assert limit - 1 <= found.gain.ns / 1_000 <= limit + 1


@pytest.mark.parametrize(
    ("sent", "update", "case"),
    [(4000, 12, "offload"), (4001, 12, ""), (4001, 18, "offload"), (1023, 18, "")],
    ids=["after the update, as large", "after it, larger", "in the update", "in it, and no gradients were sent"],
)
def test_parameters_that_come_back_from_an_offloaded_optimizer_are_no_batch(
    sent: int, update: int, case: str
) -> None:
    assert [found for found in list_advice(offloaded(sent, update=update)) if found[0] == "pinned_copies"] == [
        ("pinned_copies", case)
    ]


def test_what_a_later_step_copies_is_a_batch_though_it_has_the_size_of_gradients() -> None:
    document = offloaded(4000)
    for each in document["traceEvents"]:
        if "Optimizer" in each["name"] or "DtoH" in each["name"]:
            each["ts"] -= 50
    before = {
        "ph": "X",
        "cat": "user_annotation",
        "name": "ProfilerStep#0",
        "pid": 1,
        "tid": 1,
        "ts": -100,
        "dur": 100,
    }
    document["traceEvents"].append(before)
    assert ("pinned_copies", "") in list_advice(document)


def test_pauses_between_small_collectives_in_a_row_are_no_launch_overhead() -> None:
    """Buckets remove them, and graphs or fewer operators don't; a kernel between two of them makes them that."""
    facts = " In~msg~nelems=1000 dtype=Float Collective~name=allreduce".replace("~", " ")

    def late(between: str) -> Document:
        lines = [work(500, 1_500, 100, 1, "gemm"), BACKWARD]
        for number in range(30):
            at, call = 2_100 + 100 * number, 10 + 2 * number
            lines.append(work(at, 50, at - 5, call, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", call=4) + facts)
            if between:
                lines.append(work(at + 60, 5, at + 55, call + 1, between, call=4))
        return picture(*lines, "host cuda_runtime cudaDeviceSynchronize 5200 4700")

    found = {each.finding.id: each for each in advice(read_bytes(json.dumps(late("")).encode()))}
    assert "launch_bound" not in found
    gain = found["small_collectives"].gain
    # Of the first collective 50 us remain, and of each other one 1 us at 4 bytes per ns.
    assert gain is not None and gain.measured_ns == pytest.approx(29 * 99_000, rel=0.01)
    assert gain.ns <= 29 * 100_000
    assert "launch_bound" in {rule for rule, _ in list_advice(late("vectorized"))}


def test_copies_of_an_offloaded_optimizer_are_no_parameters_that_it_steps_one_by_one() -> None:
    """Eight copies in its step come back whichever way it computes; eight kernels don't."""
    mark = "host user_annotation Optimizer.step#DeepSpeedCPUAdam.step 5000 4000"

    def stepping(kind: str, name: str) -> Document:
        lines = [work(10, 3_000, 5, 1), mark]
        for number in range(8):
            at = 5_010 + 400 * number
            lines += [
                f"host cpu_op aten::copy_ {at} 300",
                f"host cuda_runtime cudaMemcpyAsync {at + 200} 90 correlation={10 + number}",
                f"gpu0 {kind} {name} {at + 210} 70 correlation={10 + number} stream=7 bytes=4000",
            ]
        return picture(*lines, "gpu0 gpu_memcpy Memcpy~DtoH~(Device~->~Pinned) 3100 2 stream=9 bytes=4000")

    copying = {rule for rule, _ in list_advice(stepping("gpu_memcpy", "Memcpy~HtoD~(Pageable~->~Device)"))}
    assert "optimizer_loop" not in copying and "pageable_copies" in copying
    assert "optimizer_loop" in {rule for rule, _ in list_advice(stepping("kernel", "vectorized"))}


@pytest.mark.parametrize(("copying", "gained"), [(1_000, 1_000 + 995), (5_985, 5_985 + 5)])
def test_a_copy_to_the_host_costs_its_time_and_the_idle_time_after_it(copying: int, gained: float) -> None:
    found = get_advice(read_bytes(json.dumps(reading("Pageable", copying)).encode()), "blocking_copies")
    assert found is not None and found.gain is not None
    assert found.gain.measured_ns / 1_000 == pytest.approx(gained, abs=15)
    assert found.gain.ns <= 1e6 * 10 - 1e3 * copying  # on a stream of its own, it still takes its time


@pytest.mark.parametrize(("reads_back", "ids"), [(False, set()), (True, {"blocking_copies"})])
def test_waits_for_copies_from_pageable_memory_are_one_advice(reads_back: bool, ids: set[str]) -> None:
    to_host = (
        "host cpu_op aten::copy_ 5000 1010",
        "host cuda_runtime cudaMemcpyAsync 5005 1000 correlation=4",
        "gpu0 gpu_memcpy Memcpy~DtoH~(Device~->~Pageable) 5010 990 correlation=4 stream=7",
    )
    events = picture(
        "host cpu_op aten::copy_ 100 3010",
        "host cuda_runtime cudaMemcpyAsync 110 3 correlation=3",
        "host cuda_runtime cudaStreamSynchronize 115 2995",
        "gpu0 gpu_memcpy Memcpy~HtoD~(Pageable~->~Device) 115 2990 correlation=3 stream=7",
        work(4_000, 900, 3_995, 1),
        *(to_host if reads_back else ()),
        work(7_000, 3_000, 6_995, 2),
    )
    trace = read_bytes(json.dumps(events).encode())
    assert get_advice(trace, "pageable_copies") is not None
    assert {each.finding.id for each in advice(trace)} & {"blocking_copies"} == ids


def test_a_copy_from_pinned_memory_saves_the_wait_for_what_runs_before_it() -> None:
    """The host computes for 2 ms after a wait for a kernel of 2 ms and a copy, which may be in parallel."""
    events = picture(
        work(60, 2_040, 50, 1),
        "host cpu_op aten::copy_ 110 2480",
        "host cuda_runtime cudaMemcpyAsync 112 3 correlation=2",
        "host cuda_runtime cudaStreamSynchronize 116 2464",
        "gpu0 gpu_memcpy Memcpy~HtoD~(Pageable~->~Device) 2100 470 correlation=2 stream=7",
        "host cpu_op aten::unique 2590 2000",
        work(4_600, 4_500, 4_592, 3),
    )
    found = get_advice(read_bytes(json.dumps(events).encode()), "pageable_copies")
    assert found is not None and found.gain is not None and found.gain.basis == "what_if"
    assert found.gain.ns / 1_000 == pytest.approx(2_470, abs=30)


def test_a_fused_step_on_the_cpu_gains_no_more_than_is_said() -> None:
    """Most of an operator on few numbers is its call: without 16 of them, 1,800 of 1,900 us are gone."""
    calls = [f"host cpu_op aten::{name} {1000 + 100 * i} 95" for i, name in enumerate(["mul_", "lerp_"] * 8)]
    found = get_advice(
        read_bytes(
            json.dumps(
                picture(
                    "host user_annotation Optimizer.step#AdamW.step 900 1900",
                    *calls,
                    "host cpu_op aten::mm 5000 4000",
                )
            ).encode()
        ),
        "optimizer_on_cpu",
    )
    assert found is not None and found.gain is not None
    assert found.gain.ns >= 1_800_000


@pytest.mark.parametrize(("after", "is_found"), [(8, True), (7, False)])
def test_what_the_closure_of_an_optimizer_does_is_no_part_of_its_step(after: int, is_found: bool) -> None:
    """It computes eight gradients, and the step updates that many parameters, or one less."""
    engine = "host cpu_op autograd::engine::evaluate_function:~AddmmBackward0"
    calls = [f"{engine} {1000 + 100 * i} 95\nhost cpu_op aten::mul_ {1010 + 100 * i} 80" for i in range(8)]
    calls += [f"host cpu_op aten::mul_ {2000 + 100 * i} 95" for i in range(after)]
    drawn = picture("host user_annotation Optimizer.step#AdamW.step 900 2000", *"\n".join(calls).split("\n"))
    found = get_advice(read_bytes(json.dumps(drawn).encode()), "optimizer_on_cpu")
    assert (found is not None) == is_found
    if found is not None and found.gain is not None:
        assert found.gain.ns == 2_900_000 - 1_795_000


def draw_batches(prefetched: bool) -> Trace:
    """Return four steps that copy a batch in 2 ms and compute on it for 3 ms.

    A host that copies is slower right after it: its caches are cold. One that has copied the batch before, on a
    stream of its own, isn't, and allocates memory for it and copies it beside the kernel.
    """
    lines, at = [], 0
    for step in range(4):
        begin, copy, number = at, at + (40 if prefetched else 120), 2 * step + 1
        host, call = (40, 10) if prefetched else (2_200, 2_080)
        lines += [
            f"host cpu_op aten::to {begin + 10} {host}",
            f"host cpu_op aten::_to_copy {begin + 12} {host - 4}",
            f"host cpu_op aten::copy_ {begin + 20} {host - 14}",
            f"host cuda_runtime cudaMemcpyAsync {begin + host - call - 5} {call} correlation={number}",
            f"gpu0 gpu_memcpy Memcpy~HtoD~(Pageable~->~Device) {copy} 2000 correlation={number} "
            f"stream={20 if prefetched else 7}",
        ]
        at = begin + 10 + host
        linear = 60 if prefetched else 300
        lines += [
            f"host cpu_op aten::linear {at} {linear}",
            f"host cuda_runtime cudaLaunchKernel {at + linear - 20} 10 correlation={number + 1}",
            f"gpu0 kernel gemm {at + linear - 5} 3000 correlation={number + 1} stream=7",
            f"host cuda_runtime cudaDeviceSynchronize {at + linear + 5} 3000",
        ]
        at += linear + 3_010
        lines.append(f"host user_annotation ProfilerStep#{step} {begin} {at - begin}")
    return draw("\n".join(lines))


def test_a_batch_copied_ahead_gains_no_more_than_is_said() -> None:
    """Neither the operators that copy nor the slow launch after them are left then."""
    copying, prefetched = draw_batches(False), draw_batches(True)
    found = get_advice(copying, "pageable_copies")
    assert found is not None and found.gain is not None and found.gain.basis == "what_if"
    before, after = (spans.ends - spans.starts for spans in map(steps, (copying, prefetched)))
    for gain in (found.gain, *measure_gains(copying, [found.finding])):
        assert gain.ns >= (before - after).mean()
        assert gain.ns <= before.mean() - 3_000_000


def test_stalls_of_the_loader_cost_a_mean_over_all_steps_but_the_first() -> None:
    found = get_advice(read_bytes(json.dumps(RULES["data_loading", "stalls"].applies).encode()), "data_loading")
    assert found is not None and found.gain is not None and found.gain_share is not None
    assert found.finding.value == 2  # the first step may fill the loader's queue
    assert found.gain.ns / 1_000 == pytest.approx(2 * 12_000 / 8, rel=0.01)
    assert found.gain_share == pytest.approx(2 * 12_000 / (8 * 10_000 + 2 * 12_000), rel=0.01)


def test_rules_about_kernels_are_bounded_in_one_place() -> None:
    """Whatever a rule changes, `attainable.attainable_ns` says what the device needs for the rest."""
    for path in Path(kernel_rules.__file__).parent.glob("*.py"):
        source = path.read_text(encoding="utf-8")
        assert not ("roofline_times" in source or "device_peaks" in source), path.name


def test_copies_on_the_stream_that_computes_have_a_rule_of_their_own() -> None:
    """There they hold up the next kernel: a stream of their own is the first thing to try."""
    found = [rule for rule, _ in list_advice(serial_copy("Pinned"))]
    assert "pinned_copies" in found and "exposed_copies" not in found
