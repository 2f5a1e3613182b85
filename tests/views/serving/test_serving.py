"""The Serving tab: its sentences say what the payload says, and what is unknown has a reason."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from tests.support.claims import read_sentences
from tests.support.serving import DECODE_KERNEL, SAMPLER, Workload, serve
from tests.support.traces import BUSY_HOST, draw
from tests.support.views import ask
from tests.views.serving.claims import in_parts
from torch_tb_profiler.analyses.overview.finding import Advice, Finding, Gain
from torch_tb_profiler.analyses.serving.advice import ServingAdvice
from torch_tb_profiler.base.format import format_duration
from torch_tb_profiler.cli.screens.screen import payload_text
from torch_tb_profiler.cli.screens.serving import lay_out
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views._shared.serving import serving_facts
from torch_tb_profiler.views._shared.text import first_sentence, plain, text
from torch_tb_profiler.views.overview import ranks as beside_ranks
from torch_tb_profiler.views.overview.advice import build_recommendation
from torch_tb_profiler.views.overview.build import build as overview
from torch_tb_profiler.views.overview.rule_words import RULE_WORDS
from torch_tb_profiler.views.serving.build import TAB, build
from torch_tb_profiler.views.serving.words import advice_row

HEALTHY = Workload()
LOADS = {
    "host_scheduler": replace(HEALTHY, faults=dict.fromkeys(range(9, 400, 9), ("scheduler", 6000))),
    "sampling_on_host": replace(HEALTHY, faults=dict.fromkeys(range(2, 400, 2), ("sampling", 2500))),
    "network": replace(HEALTHY, faults=dict.fromkeys(range(5, 400, 6), ("network", 8000))),
    "kv_cache_full": replace(HEALTHY, kv_capacity=4000, outputs=(100, 200), prompts=(200, 400), every=2000),
    "no_requests": replace(HEALTHY, requests=12, every=200_000),
    "device": HEALTHY,
}
WORDS = {
    "host_scheduler": "mostly while the scheduler prepares the next batch.",
    "sampling_on_host": "mostly while the host samples and handles tokens.",
    "network": "mostly while it waits for another process.",
    "kv_cache_full": "The KV cache is too small for the running requests:",
    "no_requests": "The engine has no requests for ",
    "device": "so kernels set the pace.",
}


@pytest.mark.parametrize("bottleneck", LOADS)
def test_the_headline_names_what_holds_the_engine_back(bottleneck: str) -> None:
    payload = build(serve(LOADS[bottleneck])[0], NoParams())
    headline = plain(payload.headline)
    assert payload.what_holds_it_back == bottleneck
    assert WORDS[bottleneck] in headline
    assert all(len(sentence.split()) <= 28 for sentence in headline.split(". "))
    if bottleneck not in ("device", "no_requests"):
        assert payload.advice and plain(payload.advice[0].detail).startswith("Saves up to")


@pytest.mark.parametrize("bottleneck", ["host_scheduler", "sampling_on_host", "network", "device"])
def test_the_other_tabs_speak_of_iterations_not_of_steps(bottleneck: str) -> None:
    trace = serve(LOADS[bottleneck])[0]
    shown = overview(trace, NoParams())
    sentences = [plain(shown.headline), plain(shown.spent), plain(shown.gains), plain(shown.no_advice)]
    for each in shown.recommendations:
        sentences += [plain(each.title), plain(each.text), each.rule, each.exception]
    for view in ("idle", "critical_path"):
        payload = ask(trace, view)
        sentences += [payload_text(payload["headline"]), payload_text(payload["explanation"])]
    joined = "\n".join(sentences)
    assert "an average iteration" in joined
    assert not re.search(r"\bsteps?\b|training", joined, re.IGNORECASE), joined
    if bottleneck == "host_scheduler":
        assert shown.recommendations[0].case == "engine"


@pytest.mark.parametrize("case", RULE_WORDS)
def test_no_advice_for_an_engine_speaks_of_steps(case: tuple[str, str]) -> None:
    advice = Advice(Finding(case[0], case=case[1], subject="GPU 0"), Gain(9.0, 1.0, "what_if"), 0.5)
    shown = build_recommendation(advice, "an average iteration", noun="iteration")
    joined = "\n".join((plain(shown.title), plain(shown.text), shown.rule, shown.exception))
    assert not re.search(r"\bsteps?\b|\ba iteration", joined), joined


def test_a_likely_cause_is_called_likely() -> None:
    trace, _ = serve(replace(LOADS["host_scheduler"], scopes=False))
    assert "that wasn't recorded, likely the scheduler." in plain(build(trace, NoParams()).headline)


def test_the_payload_has_a_row_for_each_iteration_and_phases_add_up() -> None:
    trace, truth = serve(HEALTHY)
    payload = ask(trace, "serving")
    columns = payload["iterations"]
    lengths = {len(column) for name, column in columns.items() if name != "idle"}
    assert lengths == {len(truth.iterations)}
    assert all(len(column) == len(truth.iterations) for column in columns["idle"].values())
    assert sum(row["iterations"] for row in payload["phases"]) == len(truth.iterations)
    assert sum(row["share"] for row in payload["phases"]) == pytest.approx(1)
    for cause, total in payload["idle_by_cause"].items():
        assert sum(columns["idle"][cause]) == total
    assert payload["engine"] == {"name": "vLLM", "by": "annotations"}


@pytest.mark.parametrize("bottleneck", ["host_scheduler", "network", "device"])
def test_overview_and_idle_time_state_the_same_idle_share(bottleneck: str) -> None:
    trace, _ = serve(replace(LOADS[bottleneck], lull=(20, 200_000)))
    serving, idle, average = ask(trace, "serving"), ask(trace, "idle"), ask(trace, "overview")["average"]
    columns = serving["iterations"]
    within = sum(sum(spent) for cause, spent in columns["idle"].items() if cause != "idle")
    share = within / sum(columns["duration_ns"])
    assert share > 0.1
    assert idle["idle_ns"] / idle["duration_ns"] == pytest.approx(share, abs=0.01)
    assert average["steps"] == idle["counted"] == len(columns["phase"]) and not average["outliers"]


def test_what_is_unknown_is_null_with_its_reason() -> None:
    payload = ask(serve(Workload(form="none"))[0], "serving")
    rates, cost = payload["rates"], payload["cost"]
    for name in ("output_tokens_per_s", "kv_tokens_mean", "time_to_first_token_ns"):
        assert rates[name] is None and rates["reasons"][name]
    for name in ("fixed_ns", "per_prompt_token_ns", "per_request_ns", "per_kv_token_ns"):
        assert cost[name]["value"] is None and cost[name]["reason"]
    assert "inferred from kernels" in "".join(part["text"] for part in payload["details"])


def test_one_iteration_has_no_rate() -> None:
    payload = build(draw("host  user_annotation  step[DECODE~bs=2]  0  10"), NoParams())
    assert plain(payload.headline) == (
        "1 decode iteration takes 10.0 µs. 1 iteration is too few to tell what holds the engine back; "
        "record at least 8."
    )


def test_other_traces_have_no_such_tab_and_a_new_form_is_named_in_trace_health() -> None:
    assert TAB.reason(draw("host  cpu_op  aten::mm  0  10")) is not None
    trace = draw("host  user_annotation  step[WARP~bs=3]  0  10\nhost  cpu_op  aten::mm  0  10")
    notes = {note.kind: note.message for note in overview(trace, NoParams()).health}
    assert notes["unknown_iteration_label"].endswith("unknown format: step[WARP bs=3]")


def test_chunks_are_not_called_unknown_where_even_the_smallest_takes_too_long() -> None:
    blocking = replace(HEALTHY, prefill_first=True, budget=8192, every=90_000, requests=60)
    for per_token, words in ((40.0, "Even 64 prompt tokens push an iteration past "), (0.9, "Chunks of ")):
        trace, _ = serve(replace(blocking, law=(700, per_token, 24, 0.028)))
        advice = next(each for each in build(trace, NoParams()).advice if each.kind == "chunk_prefill")
        assert plain(advice.detail).startswith(words)


def test_the_terminal_says_each_reason_once_for_all_rates_that_it_is_the_reason_of() -> None:
    payload = ask(serve(Workload(form="none"))[0], "serving")
    unknown = [line for line in lay_out(payload).sentences if " unknown: " in line]
    assert [line.partition(" unknown")[0] for line in unknown] == [
        "Time to first token and time in queue are",
        "Output, prompt, requests in a batch and KV cache are",
    ]


def test_kernels_alone_set_no_pace_while_the_device_pauses_between_them() -> None:
    lines = []
    for start in range(0, 9600, 800):
        lines.append(f"host  user_annotation  step[DECODE~bs=2]  {start}  90")
        for i in range(40):
            number = 40 * start + i + 1
            lines.append(f"host  cuda_runtime  cudaLaunchKernel  {start + 2 * i}  1  correlation={number}")
            lines.append(f"gpu0  kernel  gemm  {start + 12 + 20 * i}  6  correlation={number}")
    headline = plain(build(draw("\n".join(lines)), NoParams()).headline)
    assert "so kernels and the short pauses between them set the pace." in headline


def test_requests_whose_drafts_are_verified_say_nothing_of_the_tokens_that_are_accepted() -> None:
    """Each verification yields a token or more per request: 2,000 tokens/s would be the least, not the rate."""
    label = "host  user_annotation  step[{}~bs=2]  {}  900"
    for name, known in (("DECODE", True), ("VERIFY", False), ("TARGET_VERIFY", False)):
        trace = draw("\n".join(label.format(name, start) for start in range(0, 12_000, 1000)))
        shown = build(trace, NoParams())
        assert (shown.rates.output_tokens_per_s is not None) == known
        assert ("The engine generates" in plain(shown.headline)) == known
        assert (shown.rates.between_tokens_median_ns is not None) == known


def test_drafts_are_no_generated_tokens_and_leave_the_time_between_tokens_unknown() -> None:
    label = "host  user_annotation  step[VERIFY~bs=2~g_sq=8~g_sk=64~g_sqsq=32~g_sqsk=256]  {}  900"
    trace = draw("\n".join(label.format(start) for start in range(0, 12_000, 1000)))
    rates = build(trace, NoParams()).rates
    assert rates.between_tokens_median_ns is None and "drafts" in rates.reasons["between_tokens_median_ns"]
    assert "96 generated or drafted" in plain(overview(trace, NoParams()).explanation)
    assert " generated; counted from" in plain(overview(serve(HEALTHY)[0], NoParams()).explanation)


def test_the_overview_without_advice_of_its_own_says_who_has_some() -> None:
    shown = overview(serve(HEALTHY)[0], NoParams())
    assert build(serve(HEALTHY)[0], NoParams()).advice and not shown.recommendations
    assert plain(shown.no_advice).endswith("Serving says what to set.")


def test_beside_other_ranks_the_headline_keeps_the_rate() -> None:
    alone, waiting = overview(serve(HEALTHY)[0], NoParams()), text("9% of it is waiting for other ranks")
    rate = plain(first_sentence(alone.headline))
    headline = plain(beside_ranks.headline_beside_ranks(alone, [], waiting))
    assert " tokens/s" in rate and headline == f"{rate} 9% of it is waiting for other ranks."
    trained = overview(draw(BUSY_HOST), NoParams())
    headline = plain(beside_ranks.headline_beside_ranks(trained, [], waiting))
    assert headline == f"{plain(first_sentence(trained.spent))} 9% of it is waiting for other ranks."


def test_graphs_are_not_advised_to_an_engine_that_replays_all_its_decodes() -> None:
    assert "--enforce-eager" in in_parts(0)() and "--enforce-eager" not in in_parts(6)()
    assert "CUDA graphs" not in in_parts(10)()


def decodes(*eager: str, replayed: int = 6, pause: int = 60, label: int = 990, scope: str = "") -> str:
    """Read what to set for decodes that replay a graph, and then launch kernels of these names one by one.

    pause  us before each of these; label: us until the label ends; scope: annotation around their launches
    """
    lines = []
    for i in range(10):
        begin, call = 1000 * i, 100 * i + 100
        lines.append(f"host user_annotation execute_context_0(0)_generation_4(4) {begin} {label}")
        lines.append(f"host cuda_runtime cudaGraphLaunch {begin + 2} 5 correlation={call}")
        attention = f"gpu0 kernel {DECODE_KERNEL.replace(' ', '~')}"
        lines += [f"{attention} {begin + 10 + 50 * number} 50 correlation={call}" for number in range(replayed)]
        at = begin + 10 + 50 * replayed
        if scope:
            lines.append(f"host user_annotation {scope} {at} {len(eager) * (pause + 10) + 5}")
        for number, name in enumerate(eager, 1):
            start = at + number * (pause + 10) - 10
            lines.append(f"host cuda_runtime cudaLaunchKernel {start - 6} 5 correlation={call + number}")
            lines.append(f"gpu0 kernel {name.replace(' ', '~')} {start} 10 correlation={call + number}")
    return " ".join(
        f"{plain(row.title)}: {plain(row.detail)}" for row in build(draw("\n".join(lines)), NoParams()).advice
    )


@pytest.mark.parametrize(
    "around",
    [{"label": 300}, {"scope": "gpu_model_runner:~sample"}, {}],
    ids=["after the label", "in work of that name", "after the graph"],
)
def test_no_graphs_are_advised_where_only_sampling_is_launched_kernel_by_kernel(around: dict[str, Any]) -> None:
    sampling = ("softmax", "sort", "cumsum", SAMPLER, "gather", "copy")
    assert "CUDA graphs" not in decodes(*sampling, **around)
    assert "CUDA graphs" in decodes("rms_norm", "gemm", DECODE_KERNEL, *sampling)


def test_what_graphs_save_are_the_pauses_between_the_kernels_of_forward_passes() -> None:
    sampling = ("softmax", SAMPLER)
    # The graph, norm, attention: two pauses of 60 us. The two of sampling stay, whatever is replayed.
    details = decodes("rms_norm", DECODE_KERNEL, *sampling)
    assert "Saves up to 120 µs of a" in details and "6.3% of the kernel time of decode forward passes" in details
    # Without a graph, of four kernels three pauses lie between them.
    details = decodes("rms_norm", "gemm", DECODE_KERNEL, "gemm", SAMPLER, replayed=0, label=300)
    assert "--enforce-eager" in details and "Saves up to 180 µs of a" in details


def test_serving_and_overview_say_the_same_of_an_average_iteration() -> None:
    trace = serve(Workload(noise=0.05, form="sglang"))[0]
    both = [*re.findall(r"busy for ([\d.]+)% of an average iteration", read_sentences("serving", trace))]
    idle = re.findall(r"idle for ([\d.]+)% of an average iteration", read_sentences("overview", trace))
    assert both and idle and {round(100 - float(each), 1) for each in both} == {float(each) for each in idle}
    steps = re.findall(r"of an? ([\d.]+ ms) iteration", read_sentences("serving", trace))
    average = ask(trace, "overview")["average"]["duration_ns"]
    assert steps and {*steps} == {format_duration(average)}


@pytest.mark.parametrize(
    ("chunk", "said"),
    [(832, "would keep an iteration under 1.52 ms"), (0, "push an iteration past 1.51 ms")],
)
def test_a_limit_is_rounded_to_the_side_on_which_it_holds(chunk: int, said: str) -> None:
    facts = serving_facts(serve(HEALTHY)[0])
    assert facts is not None
    assert said in plain(advice_row(ServingAdvice("chunk_prefill", chunk=chunk, limit_ns=1_514_900), facts).detail)
