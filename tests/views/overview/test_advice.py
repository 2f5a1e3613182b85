"""Advice in words: every case has all of them, and each leads to its evidence."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

from tests.analyses.overview.advice_traces import steps, work
from tests.analyses.overview.kernel_calls import H100, SM90, STEP, SYNC, chain, events, product
from tests.support.claims import launched, read_sentences, repeat
from tests.support.memory_traces import CALLS, memory
from tests.support.simulation.simulator import Collective, Host, Simulation, Wait, ddp
from tests.support.traces import document, draw, event, read, read_bytes
from torch_tb_profiler.analyses.overview import communication_rules, device_rules, host_rules, memory_rules
from torch_tb_profiler.analyses.overview.finding import WITHOUT_LIMIT, Advice, Finding, Gain
from torch_tb_profiler.analyses.overview.kernel_rules import (
    attention,
    chains,
    layouts,
    matrix_products,
    optimizer,
)
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views import SLUGS
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.overview.advice import build_recommendation, savings_note
from torch_tb_profiler.views.overview.build import build
from torch_tb_profiler.views.overview.rule_words import RULE_WORDS


def build_advice(id: str, case: str = "", **known: Any) -> Advice:
    details: dict[str, Any] = {
        "subject": "GPU 0",
        "place": "train.py(9): step",
        "value": 3.0,
        "event": 7,
        "window": (10, 90),
        **known,
    }
    return Advice(Finding(id, case=case, **details), Gain(5_000_000.0, 4_000_000.0, "what_if"), 0.5)


@pytest.mark.parametrize(("id", "case"), RULE_WORDS)
def test_every_case_says_what_to_do_how_much_it_gains_and_when_not(id: str, case: str) -> None:
    advice = build_recommendation(build_advice(id, case), "an average step")
    bound = "at least" if id in WITHOUT_LIMIT else "up to"
    assert advice.gain == f"saves {bound} 5.00 ms, 50% (what-if)"
    assert (advice.gain_ns, advice.gain_share) == (5_000_000.0, 0.5)
    assert advice.gain_is_limit == (bound == "up to")
    assert advice.exception.endswith(".") and not advice.rule.endswith(".")
    assert "{" not in plain(advice.text) + plain(advice.title) + advice.exception
    targets = {phrase.link for phrase in advice.text if phrase.link is not None}
    assert targets <= {advice.evidence}  # a sum of many parts opens none of them
    assert advice.evidence.partition("?")[0] in SLUGS


def draw_steps(free: int, slower: int) -> Trace:
    """Return four steps of six operators; after a call that frees memory, if there is one, three are slower.

    free    us of that call, for which the device idles
    slower  us by which each operator after it takes longer
    """
    lines, at = [], 0
    for step in range(4):
        begin = at
        if free:
            lines.append(f"host cuda_runtime cudaFree {at} {free}")
            at += free
        for number in range(6):
            host = 50 + (slower if free and number < 3 else 0)
            lines += [
                f"host cpu_op aten::mul {at} {host}",
                f"host cuda_runtime cudaLaunchKernel {at + host - 6} 5 correlation={6 * step + number + 1}",
                f"gpu0 kernel k {at + host} 40 correlation={6 * step + number + 1} stream=7",
            ]
            at += host
        at += 40
        lines += [f"host user_annotation ProfilerStep#{step} {begin} {at - begin}"]
    return draw("\n".join(lines))


def test_without_calls_that_free_memory_more_may_be_saved_than_is_said() -> None:
    with_calls, without = draw_steps(200, 30), draw_steps(0, 30)
    before, after = (build(trace, NoParams()).average for trace in (with_calls, without))
    assert before is not None and after is not None
    advice = next(each for each in build(with_calls, NoParams()).recommendations if each.id == "allocator")
    assert advice.gain_ns is not None and not advice.gain_is_limit
    assert advice.gain_ns == pytest.approx(200_000, rel=0.02)
    assert advice.gain_ns < before.duration_ns - after.duration_ns
    assert advice.gain.startswith("saves at least 200 µs, 31.7%")
    assert plain(advice.text).endswith(
        "Operators after such calls often run slower on the host, too, which this doesn't include."
    )


def test_savings_that_are_no_limits_are_not_called_upper_bounds() -> None:
    advice = [
        build_recommendation(Advice(Finding(id, value=2), Gain(5.0, 4.0, "share"), 0.5), "the step")
        for id in ("data_parallel", "allocator")
    ]
    assert plain(savings_note(advice, None, "no launch is recorded")).endswith(" Savings are measured time.")
    assert plain(savings_note(advice[:1], None, "no launch is recorded")).endswith(
        "upper bounds from measured time."
    )


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_gain_of_one_rank_of_several_is_said_to_be_of_this_rank_alone(ranks: int) -> None:
    """All ranks load data for 3 ms per step: without it, each also waits less for the others."""
    load = Host("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 3_000, True)
    programs = [
        [load, *(each for each in program if ranks > 1 or not isinstance(each, (Collective, Wait)))]
        for program in ddp(ranks)
    ]
    payload = build(Simulation(programs, syncs=True).run().trace(0), NoParams())
    (found,) = [each for each in payload.recommendations if each.id == "data_loading"]
    assert ("on this rank alone" in found.gain) == (ranks > 1)
    assert ("Savings are for this rank alone" in plain(payload.gains)) == (ranks > 1)


RULES = (
    host_rules,
    device_rules,
    communication_rules,
    memory_rules,
    attention,
    chains,
    layouts,
    optimizer,
    matrix_products,
)


def test_rules_and_words_are_the_same() -> None:
    source = "".join(inspect.getsource(module) for module in RULES)
    given = set(re.findall(r'(?:Finding\(|_find_idle_during_calls\(|_find_waits\()\s*"(\w+)"', source))
    assert given == {id for id, _ in RULE_WORDS}


def test_evidence_is_the_event_and_its_stretch() -> None:
    assert build_recommendation(build_advice("synchronization"), "the trace").evidence == "trace?event=7&at=10-90"
    assert (
        build_recommendation(build_advice("memory_limit", "training"), "the trace").evidence
        == "memory?device=GPU+0"
    )
    assert build_recommendation(build_advice("launch_bound", event=None), "the trace").evidence == "trace?at=10-90"


@pytest.mark.parametrize(
    ("gain", "is_explained"),
    [
        (Gain(11e6, 37_600, "what_if"), True),
        (Gain(38_000, 37_600, "what_if"), False),
        (Gain(30_000, 37_600, "what_if"), False),
        (Gain(37_600, 37_600, "share"), False),
    ],
)
def test_a_gain_beyond_the_gaps_after_waits_has_its_reason(gain: Gain, is_explained: bool) -> None:
    advice = Advice(Finding("synchronization", subject="aten::item", value=8), gain, 0.2)
    assert (
        "Without these waits, the host can prepare" in plain(build_recommendation(advice, "the trace").text)
    ) == is_explained


@pytest.mark.parametrize(
    ("measured", "costs"), [(160, "at least 2%"), (159, "less than 2%"), (300, "at least 2%")]
)
def test_advice_says_whether_its_cost_or_only_its_saving_is_the_reason(measured: float, costs: str) -> None:
    """Waits of 159 of 8,000 ns are shown for the 200 ns that a step without them is shorter, 2.5% of it."""
    advice = Advice(
        Finding("synchronization", subject="aten::item", value=8), Gain(200, measured, "what_if"), 0.025
    )
    rule = build_recommendation(advice, "the trace").rule
    assert f" costs {costs} of the step" in rule
    assert ("may save 2% or more" in rule) == (costs == "less than 2%")


def test_room_is_not_called_time() -> None:
    finding = Finding("memory_limit", case="training", subject="GPU 0", value=0.95)
    advice = build_recommendation(Advice(finding, None, None), "the trace")
    assert (advice.gain, advice.gain_ns) == ("saves memory, not time", None)
    assert "GPU 0 reach 95% of its memory" in plain(advice.text)


def test_names_in_advice_are_only_text() -> None:
    advice = build_recommendation(build_advice("host_code", "operator", subject="{value} <b>"), "the trace")
    assert plain(advice.title) == "Look into {value} <b>"
    assert "is in {value} <b>." in plain(advice.text)


WAITING = "\n".join(
    [steps(1), work(10, 10, 2, 1), work(9_000, 900, 8_990, 2), "host python_function a.py(3):~load 30 8900"]
)


def test_a_wait_under_a_frame_is_its_headline_and_its_advice() -> None:
    payload = build(draw(WAITING), NoParams())
    assert plain(payload.headline) == (
        "GPU 0 is idle for 90.9% of the step, mainly while the host runs no operators (9.08 of 9.09 ms). "
        "Start here: move host work off the training loop."
    )
    evidence = "Most of the time outside operators and runtime calls is spent in load (a.py:3)."
    assert plain(payload.spent).endswith(f"{evidence} 100% of the step's critical path is host code.")
    assert plain(payload.explanation).startswith(evidence)
    assert [each.id for each in payload.recommendations] == ["host_code"]
    assert payload.no_advice == ()


def test_no_headline_names_a_frame_that_covers_less_than_half() -> None:
    payload = build(draw(WAITING.replace("30 8900", "30 4000")), NoParams())
    assert "a.py" not in plain(payload.spent)
    assert plain(payload.no_advice).startswith("No known fix would save 2% or more. Look at")


def test_a_file_that_is_cut_off_gets_no_verdict() -> None:
    content = document([event(line) for line in WAITING.splitlines()])
    payload = build(read_bytes(content[: content.rindex(b"}, {")]), NoParams())
    assert plain(payload.headline).startswith("The file is truncated")
    assert payload.recommendations == []
    assert plain(payload.no_advice).startswith("No advice: the file is truncated")


def wait(name: str, start: int, gap: int, number: int) -> str:
    """Draw a kernel of 1 ms, an operator that waits for it, and `gap` us until the next launch."""
    return (
        f"{launched('gemm', start, 1_000, start - 10, number)}\n"
        f"host cpu_op {name} {start + 10} 1000\n"
        f"host cuda_runtime cudaStreamSynchronize {start + 15} 990\n"
        f"host cpu_op aten::sort {start + 1_010} {gap - 30}"
    )


@pytest.mark.parametrize(
    ("gaps", "amount"), [((600, 300, 290), "Most"), ((600, 300, 310), "The largest part"), ((600, 0, 0), "Most")]
)
def test_most_of_the_idle_time_is_at_least_half_of_it(gaps: tuple[int, int, int], amount: str) -> None:
    lines, start = [], 100
    for number, (name, gap) in enumerate(zip(("aten::item", "aten::nonzero", "aten::equal"), gaps, strict=True)):
        if gap:
            lines.append(wait(name, start, gap, number + 1))
            start += 1_000 + gap
    lines.append(launched("gemm", start, 9_990 - start, start - 10, 9))
    assert f". {amount} of that follows aten::item." in read_sentences("overview", repeat(*lines))


def test_nearly_full_memory_is_advised_on_whatever_the_card_is_called() -> None:
    card = [{"id": 3, "name": "MI300X", "totalGlobalMem": 1000}]
    events = memory("1 HIP0 a 950 950 999\n2 HIP0 a -950 0 999")
    payload = build(draw(CALLS, *events, deviceProperties=card), NoParams())
    (advice,) = (each for each in payload.recommendations if each.id == "memory_limit")
    assert "GPU 0" in plain(advice.text) and "95" in plain(advice.text)
    assert {phrase.link for phrase in advice.text} == {None, "memory?device=GPU+0"}
    room = build(draw(CALLS, *events, deviceProperties=[{**card[0], "totalGlobalMem": 2000}]), NoParams())
    assert all(each.id != "memory_limit" for each in room.recommendations)


@pytest.mark.parametrize(
    ("count", "sentence"),
    [
        (1, "1 chain of elementwise kernels in the trace runs on tensors of the same size."),
        (2, "2 chains of elementwise kernels in the trace run on tensors of the same size."),
    ],
)
def test_a_count_has_its_noun_and_its_verb(count: int, sentence: str) -> None:
    calls = [*chain("add", "mul", "relu"), product(SM90, 4096)] * count
    assert sentence in read_sentences("overview", read([STEP, SYNC, *events(*calls)], deviceProperties=[H100]))
