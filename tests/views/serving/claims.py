"""Each sentence of Serving on what holds an engine back: where it holds, and where it doesn't."""

from __future__ import annotations

import json
from dataclasses import replace

from tests.analyses.serving.test_ranks import LOAD, OTHER, rank, shown
from tests.support.claims import Claim, ReadSentences, launched, read_sentences
from tests.support.jobs import BASE_NS
from tests.support.random_jobs.surfaces import found_texts
from tests.support.serving import (
    DECODE_KERNEL,
    Workload,
    serve,
    serving_document,
    several_engines,
    without_device,
)
from tests.support.traces import draw, read
from torch_tb_profiler.model.serving.requests import QueueSample, with_queue
from torch_tb_profiler.views.serving.origins import ServingOriginsParams, build_origins


def served(load: Workload) -> ReadSentences:
    return lambda: read_sentences("serving", serve(load)[0])


def queued(waiting: int) -> ReadSentences:
    """Read the sentences about a healthy engine whose log counts so many requests in the queue."""
    trace = read(json.loads(serving_document(HEALTHY))["traceEvents"], baseTimeNanoseconds=BASE_NS)
    start = trace.wall_start_ns
    assert start is not None
    return lambda: read_sentences("serving", with_queue(trace, [QueueSample(start + 1_000_000, waiting=waiting)]))


def beside(*loads: tuple[Workload, float]) -> ReadSentences:
    """Read the sentences about ranks with these loads, whose matrix products take so many times as long."""
    return lambda: " ".join(text for _, text in found_texts(shown(*(rank(*each) for each in loads)), ""))


def labeled(label: str) -> ReadSentences:
    """Read the sentences about ten iterations with this label and a kernel."""
    lines = []
    for i in range(10):
        lines.append(f"host user_annotation {label} {1000 * i} 900")
        lines.append(launched(DECODE_KERNEL.replace(" ", "~"), 1000 * i + 200, 100, 1000 * i + 10, i + 1))
    return lambda: read_sentences("serving", draw("\n".join(lines)))


def in_parts(replayed: int) -> ReadSentences:
    """Read the sentences about decodes of which a graph replays so many kernels, and the rest are launched."""
    lines = []
    for i in range(10):
        begin = 1000 * i
        lines.append(f"host user_annotation execute_context_0(0)_generation_4(4) {begin} 990")
        lines.append(f"host cuda_runtime cudaGraphLaunch {begin + 2} 5 correlation={100 * i + 100}")
        for number in range(10):
            if number >= replayed:
                call = 100 * i + 101 + number
                lines.append(f"host cuda_runtime cudaLaunchKernel {begin + 90 * number + 5} 5 correlation={call}")
            else:
                call = 100 * i + 100
            name = DECODE_KERNEL.replace(" ", "~")
            lines.append(f"gpu0 kernel {name} {begin + 90 * number + 10} 75 correlation={call} stream=7")
    return lambda: read_sentences("serving", draw("\n".join(lines)))


def by_origin(*lines: str) -> ReadSentences:
    """Read the sentences about the origins of kernels of an iteration that decodes."""
    picture = "\n".join(("host user_annotation execute_context_0(0)_generation_4(4) 0 900", *lines))
    return lambda: " ".join(
        text for _, text in found_texts(build_origins(draw(picture), ServingOriginsParams()), "")
    )


def together(*loads: Workload) -> ReadSentences:
    """Read the sentences about engines that run in one process, each on a thread of its own."""
    return lambda: read_sentences("serving", several_engines(*loads))


HEALTHY = Workload()
SCHEDULING = replace(HEALTHY, faults=dict.fromkeys(range(9, 400, 9), ("scheduler", 6000)))
IDLE = replace(HEALTHY, requests=12, every=200_000)
FULL = replace(HEALTHY, kv_capacity=4000, outputs=(100, 200), prompts=(200, 400), every=2000)
BLOCKING = replace(HEALTHY, prefill_first=True, budget=8192, every=90_000, requests=60)
SLOW_PROMPTS = replace(BLOCKING, law=(700, 40.0, 24, 0.028))
QUICK_PROMPTS = replace(BLOCKING, law=(700, 0.9, 24, 0.028))
UNLABELED = replace(HEALTHY, form="none")

MM = "host cpu_op aten::mm 5 50\n" + launched("gemm", 200, 100, 10)
RELU = "host cpu_op aten::relu 105 50\n" + launched("relu", 400, 50, 110, 2)


def decoding(iterations: int) -> ReadSentences:
    """Read the sentences about so many iterations of 10 us that decode for two requests."""
    lines = [f"host user_annotation step[DECODE~bs=2] {20 * number} 10" for number in range(iterations)]
    return lambda: read_sentences("serving", draw("\n".join(lines)))


def decoding_for(requests: list[int]) -> ReadSentences:
    """Read the sentences about iterations of 900 us that decode for so many requests each."""
    lines = []
    for i, count in enumerate(requests):
        lines.append(f"host user_annotation execute_context_0(0)_generation_{count}({count}) {1000 * i} 900")
        lines.append(launched(DECODE_KERNEL.replace(" ", "~"), 1000 * i + 200, 600, 1000 * i + 10, i + 1))
    return lambda: read_sentences("serving", draw("\n".join(lines)))


CLAIMS = [
    Claim(
        "{rate}; {apart}the {device} is idle for {idle} of an average iteration, mostly {when}{likely}.",
        r"is idle for 37\.9% of an average iteration, mostly while the scheduler prepares the next batch\.",
        served(SCHEDULING),
        "the scheduler is recorded nowhere, so it is only likely",
        served(replace(SCHEDULING, scopes=False)),
    ),
    Claim(
        "{rate}; {apart}the {device} is busy for {busy} of an average iteration, {pace}.",
        r"the GPU is busy for 81\.8% of an average iteration, so kernels set the pace\.",
        served(HEALTHY),
        "the scheduler stalls",
        served(SCHEDULING),
    ),
    Claim(
        "apart from {iterations}, ",
        r"; apart from iteration 20, the GPU is busy for 84\.7% of an average iteration, so kernels",
        served(replace(HEALTHY, faults={20: ("scheduler", 300_000)})),
        "the scheduler stalls in many iterations",
        served(SCHEDULING),
    ),
    Claim(
        "{noun} {names}",
        "apart from iterations 20 and 40, the GPU",
        served(replace(HEALTHY, faults={20: ("scheduler", 300_000), 40: ("scheduler", 300_000)})),
        "one of them stalls far less",
        served(replace(HEALTHY, faults={20: ("scheduler", 300_000), 40: ("scheduler", 3000)})),
    ),
    Claim(
        "{count} iterations",
        "apart from 4 iterations, the GPU",
        served(replace(HEALTHY, faults=dict.fromkeys((20, 40, 60, 80), ("scheduler", 300_000)))),
        "these are three",
        served(replace(HEALTHY, faults=dict.fromkeys((20, 40, 60), ("scheduler", 300_000)))),
    ),
    Claim(
        "In {iterations}, the {device} is idle for {time} {when}{likely}.",
        r"In iteration 20, the GPU is idle for 300 ms while it waits for another process\.",
        served(replace(HEALTHY, faults={20: ("network", 300_000)})),
        "it waits for the scheduler",
        served(replace(HEALTHY, faults={20: ("scheduler", 300_000)})),
    ),
    Claim(
        "In {iterations}, {time} pass outside the model, {when}{likely}.",
        r"In iteration 20, 300 ms pass outside the model, while the host samples and handles tokens\.",
        lambda: read_sentences("serving", without_device(replace(HEALTHY, faults={20: ("sampling", 300_000)}))),
        "device work is recorded",
        served(replace(HEALTHY, faults={20: ("sampling", 300_000)})),
    ),
    Claim(
        "{count} {hold} up decoding requests by {mean} each.",
        r"32 prefills hold up decoding requests by 42\.0 ms each\.",
        served(SLOW_PROMPTS),
        "a prompt token costs a fortieth",
        served(QUICK_PROMPTS),
    ),
    Claim(
        "The KV cache is too small for the running requests: {count} {recompute} preempted ones.",
        r"The KV cache is too small for the running requests: 11 iterations recompute preempted ones\.",
        served(FULL),
        "it has room for all",
        served(replace(FULL, kv_capacity=10**6)),
    ),
    Claim(
        "The engine has no requests for {share} of the window{likely}.",
        r"The engine has no requests for 67\.3% of the window, as far as the trace shows\.",
        served(IDLE),
        "they arrive more often",
        served(HEALTHY),
    ),
    Claim(
        "The engine generates {rate}",
        r"The engine generates 5,202 tokens/s",
        served(HEALTHY),
        "the scheduler stalls",
        served(SCHEDULING),
    ),
    Claim(
        "{count} {take} {time}{median}",
        r"115 decode iterations take 1\.74 ms \(median\)",
        served(UNLABELED),
        "kernels take half as long again",
        served(replace(UNLABELED, law=(1350, 0.63, 45, 0.0315))),
    ),
    Claim(
        "{count} {take} {time}{median}",
        r"1 decode iteration takes 10\.0 µs\.",
        decoding(1),
        "it is the median of two",
        decoding(2),
    ),
    Claim(
        "The iteration is {phase}{batch}.",
        r"The iteration is decode only, with 2 requests\.",
        decoding(1),
        "there are two",
        decoding(2),
    ),
    Claim(
        "{first} of {count} {are} {phase}{batch}.",
        r"115 of 164 iterations are decode only, with 9\.55 requests on average\.",
        served(HEALTHY),
        "fewer requests arrive",
        served(replace(HEALTHY, requests=30)),
    ),
    Claim(
        "{window}",
        "The batch size is steady.",
        served(HEALTHY),
        "the cache is full until the last requests end",
        served(FULL),
    ),
    Claim(
        "{window}",
        "The batch is shrinking, so these aren't steady-state rates.",
        decoding_for([8] * 6 + [6] * 6 + [2] * 6),
        "as many requests are added as end",
        decoding_for([8] * 18),
    ),
    Claim(
        "{window}",
        "The batch is still growing, so these aren't steady-state rates.",
        decoding_for([2] * 6 + [6] * 6 + [8] * 6),
        "as many requests end as are added",
        decoding_for([8] * 18),
    ),
    Claim(
        "The iterations are inferred from kernels: none has a label.",
        "The iterations are inferred from kernels: none has a label.",
        served(UNLABELED),
        "they have labels",
        served(HEALTHY),
    ),
    Claim(
        "The phase of {count} is inferred from kernels.",
        r"The phase of 10 iterations is inferred from kernels\.",
        labeled("execute_new_0_cached_4"),
        "the label has it",
        labeled("execute_context_0(0)_generation_4(4)"),
    ),
    Claim(
        "{engines} in this process {run} iterations on {threads} of {their} own; the rest is about the one with "
        "most iterations.",
        r"1 other engine in this process runs iterations on 1 thread of its own; the rest is about the one with ",
        together(HEALTHY, replace(HEALTHY, seed=2)),
        "it runs alone",
        together(HEALTHY),
    ),
    Claim(
        "{rate}; {apart}{idle} of an average iteration passes outside the model, mostly {when}{likely}.",
        r"93\.5% of an average iteration passes outside the model, mostly while the host runs code that wasn't",
        lambda: read_sentences("serving", without_device(HEALTHY)),
        "a device is recorded",
        served(HEALTHY),
    ),
    Claim(
        "For {time} nothing was recorded before a prefill: most likely no request waited, but slow host code in "
        "another process would look the same.",
        r"For 1\.01 s nothing was recorded before a prefill",
        served(IDLE),
        "a request always waits",
        served(HEALTHY),
    ),
    Claim(
        "Even {chunk} prompt tokens push an iteration past {limit}, so smaller chunks only spread the wait.",
        r"Even 64 prompt tokens push an iteration past 1\.52 ms, so smaller chunks only spread the wait\.",
        served(SLOW_PROMPTS),
        "a prompt token costs a fortieth",
        served(QUICK_PROMPTS),
    ),
    Claim(
        "Chunks of {chunk} prompt tokens would keep an iteration under {limit} of {device} time.",
        r"Chunks of 832 prompt tokens would keep an iteration under 1\.51 ms of GPU time\.",
        served(QUICK_PROMPTS),
        "a prompt token costs forty times as much",
        served(SLOW_PROMPTS),
    ),
    Claim(
        "{now} requests instead of {before} would give up to {factor}× the tokens/s if {waiting}the KV cache "
        "has room.",
        r"18 requests instead of 9 would give up to 1\.5× the tokens/s if that many wait and the KV cache has",
        served(HEALTHY),
        "a request costs more, and what all share costs less",
        served(replace(HEALTHY, law=(300, 0.42, 200, 0.021))),
    ),
    Claim(
        "{now} requests instead of {before} would give up to {factor}× the tokens/s if {waiting}the KV cache "
        "has room.",
        r"would give up to 1\.5× the tokens/s if the KV cache has room\.",
        queued(3),
        "the log counts no request in the queue",
        queued(0),
    ),
    Claim(
        "Saves up to {gain} of a {mean} iteration, and the wait of each preempted request.",
        r"Saves up to 3\.04 µs of a 1\.56 ms iteration, and the wait of each preempted request\.",
        served(FULL),
        "no request is preempted",
        served(HEALTHY),
    ),
    Claim(
        "Saves up to {gain} of a {mean} iteration.",
        r"Shorten the waits for other processes Saves up to 1\.33 ms of a 3\.32 ms iteration\.",
        served(replace(HEALTHY, faults=dict.fromkeys(range(5, 400, 6), ("network", 8000)))),
        "the waits are half as long",
        served(replace(HEALTHY, faults=dict.fromkeys(range(5, 400, 6), ("network", 4000)))),
    ),
    Claim(
        "{ranks} run each of the {count} together{rate}, so each counts once.",
        r"2 ranks run each of the \d+ iterations together and generate [\d,.]+ tokens/s, so each counts once\.",
        beside((LOAD, 1.0), (LOAD, 1.0)),
        "their batches differ",
        beside((LOAD, 1.0), (OTHER, 1.0)),
    ),
    Claim(
        "{ranks} are {engines} with separate batches{rate}.",
        r"2 ranks are 2 engines with separate batches",
        beside((LOAD, 1.0), (OTHER, 1.0)),
        "their batches are the same",
        beside((LOAD, 1.0), (LOAD, 1.0)),
    ),
    Claim(
        "None is clearly slower than the others.",
        "None is clearly slower than the others.",
        beside((LOAD, 1.0), (LOAD, 1.005), (LOAD, 1.0)),
        "one is slower by a fifth",
        beside((LOAD, 1.0), (LOAD, 1.2), (LOAD, 1.0)),
    ),
    Claim(
        "The slowest is {slowest}: its kernels take {time} of an iteration, {extra} more than the median of the "
        "others.",
        r"The slowest is rank 1: its kernels take ",
        beside((LOAD, 1.0), (LOAD, 1.2), (LOAD, 1.0)),
        "another one is slower",
        beside((LOAD, 1.0), (LOAD, 1.2), (LOAD, 1.4)),
    ),
    Claim(
        "Saves up to {gain} of a {mean} iteration: {share} of the kernel time of decode forward passes isn't "
        "replayed from a graph.",
        r"Replay the rest of the decode iterations as CUDA graphs, too Saves up to 60\.\d µs of a 999 µs "
        r"iteration: 40% of the kernel time of decode forward passes isn't replayed from a graph\.",
        in_parts(6),
        "no graph replays anything, so that the engine needs its flag",
        in_parts(0),
    ),
    Claim(
        "These iterations ran no kernels.",
        "These iterations ran no kernels.",
        by_origin("host cpu_op aten::mm 5 50"),
        "they ran one",
        by_origin(MM),
    ),
    Claim(
        "{family} in {place} takes {time} of {all} of kernel time in an average {phase}iteration, more than any "
        "other known origin.",
        r"Matrix product in aten::mm takes 100 µs of 150 µs of kernel time in an average decode iteration",
        by_origin(MM, RELU),
        "the other operator takes longer",
        by_origin(MM, RELU.replace("relu 400 50", "relu 400 150")),
    ),
    Claim(
        "The origin of {share} is unknown{reason}.",
        r"The origin of 66\.7% is unknown: no operator encloses the launch\.",
        by_origin(launched("gemm", 200, 100, 10), RELU),
        "an operator is around it",
        by_origin(MM, RELU),
    ),
]

NO_CLAIMS = {
    "{rate}. {reason}.": "why nothing is said",
    "{rate}.": "a part of the sentence on the rate",
    **dict.fromkeys(
        (
            "The batch is still growing, so these aren't steady-state rates.",
            "The batch is shrinking, so these aren't steady-state rates.",
            "The batch size is steady.",
        ),
        "what {window} says",
    ),
    "{title}": "a part of the sentence on what advice saves: tests/analyses/serving",
    "Payoff not estimated: what a prompt token costs isn't known from this trace.": "why nothing is said",
    "Only {count} of this run has iterations, so there is nothing to compare.": "why nothing is said",
}
"""Templates that say nothing of who, why, or how much, with the reason."""
