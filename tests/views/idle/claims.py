"""Each sentence of Idle time on what a device idles for, and why: where it holds, and where it doesn't."""

from __future__ import annotations

from tests.support.claims import Claim, ReadSentences, launched, read_sentences, repeat
from tests.support.random_jobs.surfaces import found_texts
from tests.support.simulation.simulator import Action, Simulation, ddp, on_two_devices
from tests.views.idle.test_ranks import answer
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.views.idle.payload import IdleParams


def of(trace: Trace) -> str:
    return read_sentences("idle", trace)


def steps(*lines: str, count: int = 4) -> ReadSentences:
    """Read the sentences about steps of 10 ms."""
    return lambda: of(repeat(*lines, steps=count))


LOADER = "host user_annotation enumerate(DataLoader)#_It.__next__"
LATE = launched("gemm", 6_000, 4_000, 5_990)
"""A kernel at the end of a step, launched as it begins."""


def many(middle: str, kernel: int = 100) -> ReadSentences:
    """Read the sentences about steps of 20 kernels, each launched by an operator of 400 us before it."""
    lines = [
        f"host {middle} {500 * i + 10} 400\n" + launched("gemm", 500 * i + 420, kernel, 500 * i + 412, i)
        for i in range(20)
    ]
    return steps(*lines)


def syncing(*calls: str) -> ReadSentences:
    """Read the sentences about a kernel that a call waits for, and another one after it."""
    return steps(launched("gemm", 20, 2_000, 10), *calls, launched("relu", 6_000, 3_900, 5_990, 2))


SYNC = "host cuda_runtime cudaStreamSynchronize 30 1995"


def draining(first: int, second: int) -> ReadSentences:
    """Read the sentences about two calls that wait for a kernel each, and how long the device idles after each."""
    relu, last = 2_020 + first, 2_520 + first + second
    return steps(
        launched("gemm", 20, 2_000, 10),
        "host cuda_runtime cudaStreamSynchronize 30 1990",
        launched("relu", relu, 500, relu - 10, 2),
        f"host cuda_runtime cudaDeviceSynchronize {relu + 10} 490",
        launched("relu", last, 9_990 - last, last - 10, 3),
    )


def beside(programs: list[list[Action]], accumulates: int = 1, **shown: object) -> ReadSentences:
    """Read the sentences about rank 0 beside the others."""
    job = Simulation(programs, steps=6, accumulates=accumulates)
    return lambda: " ".join(
        text
        for _, text in found_texts(answer(job.run(), 0, IdleParams(**shown)), "")  # type: ignore[arg-type]
    )


CLAIMS = [
    Claim(
        "{device} is idle for {share} ({idle} of {duration}), {time} of it {cause}.",
        r"GPU 0 is idle for 60% of an average step \(6\.00 ms of 10\.0 ms\), 5\.9\d ms of it waiting for data "
        r"loading\.",
        steps(f"{LOADER} 0 5980", LATE),
        "the host runs an operator then",
        steps("host cpu_op aten::sort 0 5980", LATE),
    ),
    Claim(
        "{device} is busy for {share}{exposed}.",
        r"GPU 0 is busy for 98% of an average step\.",
        steps(launched("gemm", 100, 9_800, 90)),
        "it runs a tenth less",
        steps(launched("gemm", 100, 8_800, 90)),
    ),
    Claim(
        "{rank}{time}{per_step} {cause}.",
        r"Next: 2\.00 ms per step waiting for operators on the host\.",
        steps(f"{LOADER} 0 3980", "host cpu_op aten::sort 3980 2000", LATE),
        "an annotation covers that time",
        steps(f"{LOADER} 0 3980", "host user_annotation prepare 3980 2000", LATE),
    ),
    Claim(
        "No sync caused this: the {device} simply caught up with the host.",
        r"No sync caused this: the GPU simply caught up with the host\.",
        syncing("host cpu_op aten::sort 30 5000"),
        "a call waits until the first kernel has ended",
        syncing(SYNC),
    ),
    Claim(
        "No sync caused this: the {device} simply caught up with the host.",
        r"No sync caused this: the GPU simply caught up with the host\.",
        steps(launched("gemm", 20, 4_900, 10), launched("relu", 4_940, 5_000, 4_930, 2)),
        "both were launched long before: the gap is between queued kernels",
        steps(
            launched("gemm", 12, 4_900, 2), launched("relu", 4_940, 5_055, 8, 2), "host cpu_op aten::sort 20 9970"
        ),
    ),
    Claim(
        "{share} of the idle time follows {call} that drained the queue.",
        r"% of the idle time follows a cudaStreamSynchronize that drained the queue\.",
        syncing(SYNC),
        "the next kernel was launched while it waits",
        steps(launched("gemm", 20, 2_000, 10), SYNC, launched("relu", 6_000, 3_900, 1_000, 2)),
    ),
    Claim(
        "{share} of the idle time follows calls that drained the queue, {mostly} {call}.",
        r"follows calls that drained the queue, mostly cudaDeviceSynchronize\.",
        steps(
            launched("gemm", 20, 2_000, 10),
            SYNC,
            launched("relu", 2_500, 500, 2_490, 2),
            "host cuda_runtime cudaDeviceSynchronize 2510 500",
            launched("relu", 8_000, 1_900, 7_990, 3),
        ),
        "the first of them is before most idle time",
        steps(
            launched("gemm", 20, 2_000, 10),
            SYNC,
            launched("relu", 7_000, 500, 6_990, 2),
            "host cuda_runtime cudaDeviceSynchronize 7010 500",
            launched("relu", 8_000, 1_900, 7_990, 3),
        ),
    ),
    Claim(
        "{share} of the idle time follows calls that drained the queue, {mostly} {call}.",
        "the queue, mostly cuda",
        draining(3_000, 2_000),
        "half of it follows each of two calls",
        draining(2_500, 2_500),
    ),
    Claim(
        "Launch-bound: the host launches one kernel every {launch}; the {device} finishes one in {item} "
        "(medians).",
        r"Launch-bound: the host launches one kernel every 500 µs; the GPU finishes one in 100 µs \(medians\)\.",
        many("cpu_op aten::mm"),
        "the host loads data instead",
        many("user_annotation enumerate(DataLoader)#_It.__next__"),
    ),
    Claim(
        "The recorded launches and syncs explain when {share} starts.",
        "explain when all device work in complete steps starts",
        steps(LATE),
        "work begins long after its launch, and after nothing",
        steps(launched("gemm", 6_000, 4_000, 100)),
    ),
    Claim(
        "The recorded launches and syncs don't explain when {work} starts.",
        "don't explain when the device work in complete steps starts",
        steps(launched("gemm", 6_000, 4_000, 100), count=1),
        "it begins right after its launch",
        steps(LATE, count=1),
    ),
    # ---- beside other ranks
    Claim(
        "This rank has several devices, and waits for other ranks can't be assigned to one of them.",
        "This rank has several devices, and waits for other ranks can't be assigned to one of them.",
        beside([on_two_devices(each, 0.5) for each in ddp(2)]),
        "it has one",
        beside(ddp(2)),
    ),
    Claim(
        "Waits for other ranks are known for the device as a whole, not for a single stream.",
        "Waits for other ranks are known for the device as a whole, not for a single stream.",
        beside(ddp(2), stream=7),
        "all of its streams are shown",
        beside(ddp(2)),
    ),
    Claim(
        "No communication is exposed in these steps.",
        "No communication is exposed in these steps.",
        beside(ddp(2), step="1", accumulates=2),
        "gradients are exchanged in this step",
        beside(ddp(2), step="2", accumulates=2),
    ),
]

NO_CLAIMS = {
    "There is no complete {noun} to analyze.": "why nothing is said",
    "No time passes in {base}.": "why nothing is said: tests/views/test_zero_length.py",
    "{reason}.": "why nothing is said",
    "No other rank recorded a matching collective.": "why nothing is said",
    "{share} of the idle time follows a call that drained the queue.": "the other sentences, of no name",
    "Savings from capturing them in a graph can't be estimated: {reason}.": "why nothing is said",
}
"""Templates that say nothing of who, why, or how much, with the reason."""
