"""Why a cost or the verdict of an engine is unknown: iterations that don't tell it, and the next ones that do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from tests.support.claims import Claim, ReadSentences
from tests.support.serving import DECODE_KERNEL, Workload, serve
from tests.support.traces import draw
from torch_tb_profiler.analyses.serving.cost import COEFFICIENTS, iteration_cost
from torch_tb_profiler.analyses.serving.verdict import MIN_ITERATIONS, serving_verdict
from torch_tb_profiler.model.serving.iterations import no_iterations_reason
from torch_tb_profiler.model.trace import Trace

Batch = tuple[int, int, int]
"""Prompt tokens, requests that decode, and KV tokens of an iteration."""


def iterations(batches: Sequence[Batch], times: Sequence[float]) -> Trace:
    """Draw iterations with these batches and us of device time."""
    lines = []
    for i, ((prompt, requests, kv), us) in enumerate(zip(batches, times, strict=True)):
        context = f"context_{int(prompt > 0)}(sq{prompt}sk{prompt}sqsq{prompt**2}sqsk{prompt**2})"
        generation = f"generation_{requests}(sq{requests}sk{kv}sqsq{requests}sqsk{kv})"
        begin = 5000 * i
        lines.append(f"host user_annotation execute_{prompt + requests}_{context}_{generation} {begin} 4900")
        lines.append(f"host cuda_runtime cudaLaunchKernel {begin + 5} 5 correlation={i + 1}")
        lines.append(f"gpu0 kernel gemm {begin + 20} {us} correlation={i + 1} stream=7")
    return draw("\n".join(lines))


def unknown(name: str, trace: Trace) -> ReadSentences:
    """Read why a cost is unknown."""

    def say() -> str:
        cost = iteration_cost(trace)
        assert cost is not None
        return cost.coefficients[COEFFICIENTS.index(name)].reason or ""

    return say


def cost(
    name: str,
    *,
    count: int = 40,
    prompts: int = 20,
    sizes: int = 17,
    own_kv: bool = True,
    per_request: float = 20.0,
    noise: float = 0.0,
    later: float = 1.0,
    steps: int = 1,
) -> ReadSentences:
    """Read why a cost is unknown of so many iterations.

    prompts  so many have a prompt
    sizes    so many batch sizes
    own_kv   the length of the KV cache grows apart from the number of requests
    noise    share by which every other one takes longer
    later    how many times as long the second half takes
    steps    batches take as long as one with the next multiple of this many requests
    """
    batches, times = [], []
    for i in range(count):
        prompt = (50 + 37 * i % 400) if i >= count - prompts else 0
        requests = 8 + 5 * i % sizes
        kv = 100 * requests + (97 * i % 1000 if own_kv else 0)
        batches.append((prompt, requests, kv))
        padded = -(-requests // steps) * steps
        time = 500 + 0.5 * prompt + per_request * padded + 0.1 * kv
        times.append(round(time * (1 + noise * (i % 2)) * (later if 2 * i >= count else 1), 3))
    return unknown(name, iterations(batches, times))


def verdict(*times: int) -> ReadSentences:
    """Read why nothing is known of what holds back an engine whose iterations take these times in us."""
    starts = accumulate(times, initial=0)
    lines = [
        f"host user_annotation step[DECODE~bs=2] {at} {time}" for at, time in zip(starts, times, strict=False)
    ]

    def say() -> str:
        found = serving_verdict(draw("\n".join(lines)))
        assert found is not None
        return found.reason or ""

    return say


def none_found(*lines: str) -> ReadSentences:
    """Read why there are no iterations."""
    return lambda: no_iterations_reason(draw("\n".join(lines))) or ""


def growing(power: int) -> ReadSentences:
    """Read why a request's cost is unknown where a batch costs so a power of its size."""
    sizes = [1 + 5 * i % 16 for i in range(128)]
    batches = [(0, size, 10 * size + 97 * i % 500) for i, size in enumerate(sizes)]
    return unknown("per_request", iterations(batches, [1000 + 10 * size**power for size in sizes]))


def labeled(label: str) -> ReadSentences:
    """Read why a cost is unknown of 20 iterations with this label."""
    return unknown("fixed", draw("\n".join(f"host user_annotation {label} {10 * i} 10" for i in range(20))))


def served(name: str, load: Workload) -> ReadSentences:
    return unknown(name, serve(load)[0])


NO_KV = Workload(form="vllm")

CLAIMS = {
    "analyses/serving/cost.py": [
        Claim(
            "the labels don't say how many tokens the KV cache holds",
            "^the labels don't say how many tokens the KV cache holds$",
            served("per_kv_token", NO_KV),
            "they do",
            served("per_kv_token", replace(NO_KV, form="vllm_sums")),
        ),
        Claim(
            "the labels don't say how many tokens the KV cache holds, which adds to each request's cost",
            "how many tokens the KV cache holds, which adds to each request's cost",
            served("per_request", NO_KV),
            "they do",
            served("per_request", replace(NO_KV, form="vllm_sums")),
        ),
        Claim(
            "no iteration has {}",
            "no iteration has prompt tokens",
            cost("per_prompt_token", prompts=0),
            "one has",
            cost("per_prompt_token", prompts=1),
        ),
        Claim(
            "only {} of {} iterations have {}",
            "only 4 of 40 iterations have prompt tokens",
            cost("per_prompt_token", prompts=4),
            "five have",
            cost("per_prompt_token", prompts=5),
        ),
        Claim(
            "nearly all decode iterations have {} requests, so only their sum of costs is known",
            "nearly all decode iterations have 8 requests",
            cost("fixed", sizes=1),
            "they have 17 different numbers of requests",
            cost("fixed"),
        ),
        Claim(
            "the number of {} hardly varies",
            "the number of decoding requests hardly varies",
            cost("per_request", prompts=40, sizes=3),
            "it takes four values",
            cost("per_request", prompts=40, sizes=4),
        ),
        Claim(
            "the time doesn't grow evenly with the number of decoding requests",
            "the time doesn't grow evenly with the number of decoding requests",
            growing(2),
            "it does",
            growing(1),
        ),
        Claim(
            "it can't be separated from the other costs: their counts grow and shrink together",
            "it can't be separated from the other costs",
            cost("per_request", own_kv=False),
            "the KV cache grows apart from the number of requests",
            cost("per_request"),
        ),
        Claim(
            "it is too small to measure in these iterations",
            "it is too small to measure in these iterations",
            cost("per_request", per_request=0.01),
            "a request costs 20 us",
            cost("per_request"),
        ),
        Claim(
            "it is between {} and {}; more iterations would narrow it down",
            r"it is between [\d.]+ µs and [\d.]+ µs; more iterations would narrow it down",
            cost("fixed", noise=0.3, count=20, prompts=10),
            "there are eight times as many iterations",
            cost("fixed", noise=0.3, count=160, prompts=80),
        ),
        Claim(
            "from iteration {} on, the same batch takes a different time",
            "from iteration 20 on, the same batch takes a different time",
            cost("fixed", prompts=40, later=1.3),
            "it takes the same time",
            cost("fixed", prompts=40),
        ),
        Claim(
            "the iterations have no labels that count requests and tokens",
            "the iterations have no labels that count requests and tokens",
            served("fixed", replace(NO_KV, form="none")),
            "they have",
            served("fixed", NO_KV),
        ),
        Claim(
            "the labels don't count prompt tokens and decoding requests",
            "the labels don't count prompt tokens and decoding requests",
            labeled("step[EXTEND~bs=2]"),
            "they count both",
            labeled("step[EXTEND~bs=2~c_sq=8~c_sk=8~c_sqsq=32~c_sqsk=32]"),
        ),
        Claim(
            "{} {} too few; record at least {}",
            "11 iterations are too few; record at least 12",
            cost("fixed", count=11, prompts=5),
            "there are twelve",
            cost("fixed", count=12, prompts=5),
        ),
    ],
    "analyses/serving/verdict.py": [
        Claim(
            "the iterations take no time",
            "the iterations take no time",
            verdict(*[0] * 20),
            "they take 10 us",
            verdict(*[10] * 20),
        ),
        Claim(
            "{} {} too few to tell what holds the engine back; record at least {}",
            r"\d+ iterations are too few to tell what holds the engine back",
            verdict(*[10] * (MIN_ITERATIONS - 1)),
            "there is one more",
            verdict(*[10] * MIN_ITERATIONS),
        ),
    ],
    "model/serving/iterations.py": [
        Claim(
            "the iteration labels have an unknown format ({})",
            r"the iteration labels have an unknown format \(execute_new_context_1\)",
            none_found("host user_annotation execute_new_context_1 0 100"),
            "it is known",
            none_found("host user_annotation execute_context_0(0)_generation_4(4) 0 100"),
        ),
        Claim(
            "its labels say that no request came while it was recorded; record while requests run",
            "its labels say that no request came while it was recorded",
            none_found("host user_annotation execute_context_0(0)_generation_0(0) 0 100"),
            "a request runs",
            none_found("host user_annotation execute_context_0(0)_generation_1(1) 0 100"),
        ),
        Claim(
            "no label of an inference engine and no kernel that uses a paged KV cache was recorded",
            "no label of an inference engine and no kernel that uses a paged KV cache was recorded",
            none_found("gpu0 kernel gemm 0 10"),
            "a kernel uses it",
            none_found(f"gpu0 kernel {DECODE_KERNEL.replace(' ', '~')} 0 10"),
        ),
        Claim(
            "iterations have no labels, and no sampling kernel marks where one ends; record annotations of the "
            "engine",
            "iterations have no labels, and no sampling kernel marks where one ends",
            none_found(f"gpu0 kernel {DECODE_KERNEL.replace(' ', '~')} 0 10"),
            "a label is recorded",
            none_found(
                "host user_annotation execute_context_0(0)_generation_1(1) 0 100",
                f"gpu0 kernel {DECODE_KERNEL.replace(' ', '~')} 0 10",
            ),
        ),
    ],
}

NO_CLAIMS: dict[str, str] = {}
"""Reasons that say nothing that a trace could make false."""
