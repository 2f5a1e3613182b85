"""Each sentence of the Overview on how a step is spent and what to do: where it holds, and where it doesn't."""

from __future__ import annotations

from collections.abc import Sequence

from tests.analyses.overview.kernel_calls import H100, SM90, STEP, SYNC, events, product
from tests.analyses.roofline.test_tokens import SERVING
from tests.analyses.shared.test_typical_steps import pipeline
from tests.support.claims import Claim, ReadSentences, launched, read_sentences, repeat
from tests.support.memory_traces import CALLS, STEPS, leaving_on, memory, out_of_memory
from tests.support.random_jobs.surfaces import found_texts
from tests.support.serving import Workload, serve
from tests.support.simulation.simulator import Delay, Simulation, ddp
from tests.support.traces import draw, read
from tests.views.overview.test_leaks import GROWING, of_card
from tests.views.overview.test_ranks import both
from torch_tb_profiler.model.trace import Trace


def of(trace: Trace) -> str:
    return read_sentences("overview", trace)


def steps(*lines: str, count: int = 4) -> ReadSentences:
    """Read the sentences about steps of 10 ms."""
    return lambda: of(repeat(*lines, steps=count))


def ask(picture: str) -> ReadSentences:
    return lambda: of(draw(picture))


def using(device: str) -> ReadSentences:
    """Read the sentences about products that keep a device busy."""
    calls = [product(SM90, 8192, time=540.0)] * 18
    trace = [STEP, SYNC, *events(*calls)]
    return lambda: of(read(trace, deviceProperties=[{**H100, "name": device}]))


def beside(*delays: Delay, steps: int = 4, only: Sequence[int] | None = None, buckets: int = 3) -> ReadSentences:
    """Read the sentences about rank 0 of 4, beside the others (of `only` these)."""
    job = Simulation(ddp(4, buckets, overlap=buckets > 1), delays=delays, syncs=True, steps=steps)
    return lambda: " ".join(text for _, text in found_texts(both(job.run(), 0, only)[1], ""))


def in_turn(*ranks: int) -> ReadSentences:
    """Read the sentences about a job of which these ranks are late by 5 ms, one in each step."""
    delays = [Delay("host", ranks[step % len(ranks)], us=5000, steps=(step,)) for step in range(8)]
    return beside(*delays, steps=8)


LOADER = "host user_annotation enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
WAIT = "host cuda_runtime cudaDeviceSynchronize {} {}"
LATE = launched("gemm", 6_000, 4_000, 5_990)
ON_CPU = ("host cpu_op aten::mm 0 8000", "host python_function train.py(9):~main 0 10000")
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
BUSY = (launched("gemm", 20, 9_900, 10), WAIT.format(30, 9_920))


def evaluating(kernel: str) -> ReadSentences:
    """Read of steps of 10 ms, with 100 ms of evaluation in one of them; `kernel` is the one that it launches."""
    lines = []
    for step in range(6):
        at, length = 10_000 * step, 110_000 if step == 5 else 10_000
        lines += [
            f"host user_annotation ProfilerStep#{step} {at} {length}",
            launched("gemm", at + 20, 9_900, at + 10, 2 * step + 1),
            WAIT.format(at + 30, 9_920),
        ]
    lines += [launched(kernel, 60_020, 99_900, 60_010, 20), WAIT.format(60_030, 99_920)]
    return lambda: of(draw("\n".join(lines)))


def exposing(time: int) -> tuple[str, ...]:
    """Return steps that communicate for `time` us after a kernel, and do nothing else."""
    return (
        launched("gemm", 20, 9_900 - time, 10),
        launched(ALL_REDUCE, 9_930 - time, time, 16, 2),
        WAIT.format(30, 9_920),
    )


def communicating(time: int) -> ReadSentences:
    """Read the sentences about steps that compute for 4 ms and communicate for `time` us after that."""
    return steps(
        launched("gemm", 20, 4_000, 10),
        launched(ALL_REDUCE, 4_030, time, 16, 2, 20),
        WAIT.format(30, 4_010 + time),
        f"host cpu_op aten::add {4_050 + time} {5_900 - time}",
    )


def launching(times: int) -> ReadSentences:
    """Read the sentences about kernels with gaps of 250 us, launched late."""
    return steps(*(launched("gemm", 500 * i + 20, 250, 500 * i + 10, i) for i in range(times)))


def stalling(time: int) -> ReadSentences:
    """Read the sentences about six steps that keep a device busy; one begins with an operator of `time` us."""
    lines, at = [], 0
    for i in range(6):
        begin = at + (time if i == 3 else 0)
        lines += [
            f"host user_annotation ProfilerStep#{i} {at} {begin + 10_000 - at}",
            launched("gemm", begin + 20, 9_900, begin + 10, i + 1),
            WAIT.format(begin + 30, 9_920),
        ]
        lines += [f"host cpu_op save_checkpoint {at} {time}"] if begin > at else []
        at = begin + 10_000
    return ask("\n".join(lines))


CLAIMS = [
    Claim(
        "Start here: {title}.",
        r"Start here: load data in worker processes\.",
        steps(f"{LOADER} 0 5980", LATE),
        "an operator takes that time",
        steps("host cpu_op aten::sort 0 5980", LATE),
    ),
    Claim(
        "{waiting}; start here: {title}.",
        r"% of an average step is waiting for other ranks; start here: find out why rank 2 is late\.",
        beside(Delay("host", 2, us=5000)),
        "another rank is late",
        beside(Delay("host", 1, us=5000)),
    ),
    Claim(
        "{who} late in some {noun}s: look at {distributed}.",
        r"Another rank is late in some steps: look at Distributed\.",
        beside(Delay("host", 2, us=8000, steps=(3,)), steps=8),
        "it is the rank itself",
        beside(Delay("host", 0, us=8000, steps=(3,)), steps=8),
    ),
    Claim(
        "{device} idle for {share}, {mainly}while the host {verb}{activity} ({part}).",
        r"GPU 0 is idle for 60% of an average step, mainly while the host is loading data \(5\.98 of 6\.00 ms\)\.",
        steps(f"{LOADER} 0 5980", LATE),
        "an operator takes that time",
        steps("host cpu_op aten::sort 0 5980", LATE),
    ),
    Claim(
        "{device} idle for {share}, with its next work already submitted for {part}.",
        r"idle for 60% of an average step, with its next work already submitted for [56]\.\d+ of 6\.00 ms",
        steps(launched("gemm", 6_000, 4_000, 10)),
        "it is launched as it begins",
        steps(launched("gemm", 6_000, 4_000, 5_990)),
    ),
    Claim(
        "{device} busy for {share}{communication}{mfu}.",
        r"GPU 0 is busy for 99% of an average step\.",
        steps(*BUSY),
        "it runs a fifth less",
        steps(launched("gemm", 20, 7_900, 10), WAIT.format(30, 7_920)),
    ),
    Claim(
        ", at an MFU of {least}{mfu}",
        r", at an MFU of 4\d\.?\d?%",
        using(str(H100["name"])),
        "the peak of the device is unknown",
        using("Unknown 9000"),
    ),
    Claim(
        "Exposed communication takes {share}.",
        r"Exposed communication takes 50% of an average step\.",
        communicating(5_000),
        "it takes a tenth",
        communicating(1_000),
    ),
    Claim(
        "{category} {are} the largest part of {base}: {share}{where}.",
        r"Operators on the host are the largest part of an average step: 80%",
        steps(*ON_CPU),
        "the operator is short",
        steps("host cpu_op aten::mm 0 3000", ON_CPU[1]),
    ),
    Claim(
        ", most of it in {what}",
        ": 80%, most of it in aten::mm",
        steps(*ON_CPU),
        "another operator takes exactly half of it",
        steps("host cpu_op aten::mm 0 4000", "host cpu_op aten::add 4000 4000", ON_CPU[1]),
    ),
    Claim(
        "Most of the time outside operators and runtime calls is spent in {where}.",
        r"is spent in prepare \(train\.py:4\)\.",
        steps(
            "host python_function train.py(9):~main 0 10000",
            "host python_function train.py(4):~prepare 0 5900",
            LATE,
        ),
        "another function takes that time",
        steps(
            "host python_function train.py(9):~main 0 10000", "host python_function train.py(4):~read 0 5900", LATE
        ),
    ),
    Claim(
        "{kernel} is the top kernel: {share} of kernel time.",
        r"gemm is the top kernel: 60% of kernel time\.",
        steps(launched("gemm", 20, 5_940, 10), launched("relu", 5_961, 3_960, 16, 2), WAIT.format(30, 9_920)),
        "the other one takes longer",
        steps(launched("relu", 20, 5_940, 10), launched("gemm", 5_961, 3_960, 16, 2), WAIT.format(30, 9_920)),
    ),
    Claim(
        "{kernel} is the top kernel: {share} of kernel time in typical {noun}s.",
        r"gemm is the top kernel: 100% of kernel time in typical steps\.",
        evaluating("gemm_of_evaluation"),
        "the step that evaluates launches no other kernel",
        evaluating("gemm"),
    ),
    Claim(
        "{share} is {part}{rest}.",
        r"99(\.\d)?% of the step's critical path is device work\.",
        steps(*BUSY),
        "the host works for that long and waits for nothing",
        steps(BUSY[0], "host cpu_op aten::sort 30 9950"),
    ),
    Claim(
        "Nothing stands out: no known fix{where} would save {share} or more.",
        "Nothing stands out: no known fix would save 2% or more",
        steps(*BUSY),
        "a loader takes 5%",
        steps(f"{LOADER} 0 500", launched("gemm", 510, 9_400, 500), WAIT.format(520, 9_400)),
    ),
    Claim(
        "Nothing stands out in typical {noun}s: no known fix{where} would save {share} or more of one.",
        "Nothing stands out in typical steps: no known fix would save 2% or more of one",
        stalling(30_000),
        "no step is odd",
        stalling(0),
    ),
    Claim(
        "Nothing stands out in the device work alone: {reason}.",
        "Nothing stands out in the device work alone: the profiler didn't record the host; ",
        ask("gpu0 kernel gemm 0 400 stream=7"),
        "the host was recorded, so that what it could do better is known",
        ask("gpu0 kernel gemm 0 400 stream=7\nhost cpu_op aten::mm 0 400"),
    ),
    Claim(
        "{device} idle for {share}; what the host does then isn't recorded.",
        r"The device is idle for 50% of the trace; what the host does then isn't recorded\.",
        ask("gpu0 kernel gemm 0 100 stream=7\ngpu0 kernel gemm 300 100 stream=7"),
        "it is recorded",
        ask("gpu0 kernel gemm 0 100 stream=7\ngpu0 kernel gemm 300 100 stream=7\nhost cpu_op aten::mm 0 400"),
    ),
    Claim(
        "No known fix outside the engine's settings would save {share} or more; {serving} says what to set.",
        r"Serving says what to set\.",
        lambda: of(serve(Workload())[0]),
        "Overview has advice of its own",
        lambda: of(serve(Workload(faults=dict.fromkeys(range(9, 400, 9), ("scheduler", 6000))))[0]),
    ),
    Claim(
        "No known fix{where} would save {share} or more. Look at the gaps on the {timeline}.",
        r"No known fix would save 2% or more\. Look at the gaps on the timeline\.",
        steps(launched("gemm", 20, 400, 10), launched("gemm", 2_000, 7_900, 30, 2), WAIT.format(40, 9_900)),
        "a loader takes that time",
        steps(launched("gemm", 20, 400, 10), f"{LOADER} 430 1540", launched("gemm", 2_000, 7_900, 1_990, 2)),
    ),
    Claim(
        "No known fix{where} would save {share} or more. Look at exposed communication in {distributed}.",
        r"No known fix on this rank would save 2% or more\. Look at exposed communication in Distributed\.",
        steps(*exposing(4_900)),
        "it hides behind a kernel",
        steps(launched("gemm", 20, 9_900, 10), launched(ALL_REDUCE, 30, 4_900, 16, 2, 20), WAIT.format(30, 9_920)),
    ),
    Claim(
        "Estimates replay the recorded schedule without the time the advice removes. The replay reproduces "
        "{share} of {replayed} (at least {least} needed). Savings overlap, so they don't add up. {path} lists "
        "what a replay leaves out.",
        r"The replay reproduces 100% of complete steps",
        steps(f"{LOADER} 0 5980", LATE),
        "work begins long after its launch",
        steps(f"{LOADER} 0 5980", launched("gemm", 6_000, 1_000, 5), launched("gemm", 8_000, 2_000, 7, 2)),
    ),
    Claim(
        "This trace can't be replayed reliably: {reason}. Savings are {bounds}.",
        "This trace can't be replayed reliably: ",
        steps(f"{LOADER} 0 5980"),
        "launches explain the device's work",
        steps(f"{LOADER} 0 5980", LATE),
    ),
    Claim(
        "Savings are for this rank alone: if all ranks change, the job may save more.",
        "Savings are for this rank alone",
        steps(
            f"{LOADER} 0 3980",
            launched("gemm", 4_000, 5_000, 3_990),
            launched(ALL_REDUCE, 9_010, 900, 3_996, 2, 20),
        ),
        "nothing communicates",
        steps(
            f"{LOADER} 0 3980", launched("gemm", 4_000, 5_000, 3_990), launched("relu", 9_010, 900, 3_996, 2, 20)
        ),
    ),
    Claim(
        "{noun} {name} before them takes {duration}, because the device falls behind the host in it.",
        r"Step 0 before them takes 160 µs, because the device falls behind the host in it\.",
        ask(pipeline(60)),
        "the device has more to do in it",
        ask(pipeline(60, first_work=150)),
    ),
    Claim(
        "{count} of {times}; {category} {vary} most, from {range}.",
        r"2 steps of .*; kernels vary most, from 4\.00 ms to 5\.00 ms\.",
        ask(
            "host user_annotation ProfilerStep#0 0 10000\nhost user_annotation ProfilerStep#1 10000 11000\n"
            + launched("gemm", 20, 4_000, 10, 1)
            + "\n"
            + launched("gemm", 10_020, 5_000, 10_010, 2)
        ),
        "data loading varies more",
        ask(
            "host user_annotation ProfilerStep#0 0 10000\nhost user_annotation ProfilerStep#1 10000 14000\n"
            f"{LOADER} 5000 1000\n{LOADER} 16000 5000\n"
            + launched("gemm", 20, 4_000, 10, 1)
            + "\n"
            + launched("gemm", 10_020, 5_000, 10_010, 2)
        ),
    ),
    Claim(
        "{count} of about {duration}.",
        r"4 steps of about 10\.0 ms\.",
        steps(*BUSY),
        "one is a tenth longer",
        ask("host user_annotation ProfilerStep#0 0 10000\nhost user_annotation ProfilerStep#1 10000 11000"),
    ),
    Claim(
        "{count} recorded.",
        "1 complete step recorded",
        steps(*BUSY, count=1),
        "there are two",
        steps(*BUSY, count=2),
    ),
    Claim(
        "The model processes {rate} tokens/s: {tokens} in {duration} ({prompt} prompt, {generated}; counted from "
        "the labels of {iterations}).",
        r"The model processes 133,000 tokens/s: 133 tokens in 1\.00 ms \(128 prompt, 5 generated",
        ask(SERVING),
        "its last work ends a millisecond later",
        ask(
            SERVING
            + "gpu0 kernel gemm 1000 1000 correlation=2\nhost cuda_runtime cudaLaunchKernel 510 5 correlation=2"
        ),
    ),
    Claim(
        "{serving} shows what an iteration of the engine costs and what to set.",
        "shows what an iteration of the engine costs",
        lambda: _engine("execute_context_0(0)_generation_8(8)"),
        "the annotations are those of a profiler",
        lambda: _engine("ProfilerStep#{}"),
    ),
    Claim(
        "Memory{where} may leak: it grows by {size} per {noun}{full}.",
        "Memory on CPU may leak: it grows by 1.00 MiB per step",
        lambda: of(leaving_on("CPU")),
        "the GPU's memory does",
        lambda: of(leaving_on("GPU0")),
    ),
    Claim(
        "Memory{where} may leak: it grows by {size} per {noun}{full}.",
        "Memory may leak: it grows by 1.00 MiB per step",
        lambda: of(leaving_on("GPU0")),
        "all of it is released after the last step",
        lambda: of(leaving_on("GPU0", released=True)),
    ),
    Claim(
        "Memory{where} may leak: it grows by {size} per {noun}{full}.",
        "Memory may leak: it grows by 300 B per step, which would fill GPU 0 in at most 10 more steps",
        lambda: of(of_card(4200)),
        "each block is released",
        lambda: of(draw(STEPS, *memory(_released()))),
    ),
    Claim(
        "{count} on {devices} ran out of memory: {memory} shows what was in use.",
        "2 allocations on GPU 0 and GPU 1 ran out of memory: Memory shows what was in use",
        lambda: of(draw(CALLS, *out_of_memory("GPU0", "GPU1"))),
        "those of one device succeed",
        lambda: of(draw(CALLS, *out_of_memory("GPU0"), *memory("116 GPU1 - 4096 8192 9000"))),
    ),
    # ---- beside the other ranks
    Claim(
        "{share} is waiting for other ranks",
        r"\d% of an average step is waiting for other ranks",
        beside(Delay("host", 2, us=5000)),
        "all ranks are as late",
        beside(*(Delay("host", rank, us=5000) for rank in range(4))),
    ),
    Claim(
        "No known fix on this rank would save {share} or more.",
        r"No known fix on this rank would save 2% or more\.",
        beside(Delay("host", 3, us=5000), only=(0, 1, 2), buckets=1),
        "this rank loads its data for as long",
        beside(Delay("host", 3, us=5000), Delay("loading", 0, us=5000), only=(0, 1, 2), buckets=1),
    ),
    Claim(
        "Find out why {names} {are} late",
        "Find out why this rank is late",
        beside(Delay("host", 0, us=5000)),
        "another rank is",
        beside(Delay("host", 2, us=5000)),
    ),
    Claim(
        "{title}.",
        r"DataLoader.* Load data in worker processes\.",
        beside(Delay("loading", 0, us=5000)),
        "an operator takes the time",
        beside(Delay("host", 0, us=5000)),
    ),
    Claim(
        "Find out why ranks take turns being late",
        "Find out why ranks take turns being late",
        in_turn(0, 2, 1, 3),
        "it is the same rank each time",
        in_turn(2),
    ),
    Claim(
        "Divide the work evenly between the ranks",
        "Divide the work evenly between the ranks",
        beside(Delay("rows", 3, factor=0.6)),
        "its kernels take as short on equal sizes",
        beside(Delay("device", 3, factor=0.6)),
    ),
]


def _released() -> str:
    ends = zip("edcb", (900, 600, 300, 0), strict=True)
    return GROWING + "".join(f"\n59{i} GPU0 {block} -300 {total} 4096" for i, (block, total) in enumerate(ends))


def _engine(label: str) -> str:
    """Read the sentences about ten iterations with this annotation around each."""
    lines = []
    for i in range(10):
        at = 10_000 * i
        lines += [
            f"host user_annotation {label.format(i)} {at} 9000",
            launched("gemm", at + 30, 8_000, at + 20, i + 1),
        ]
    return of(draw("\n".join(lines)))


NO_CLAIMS = {
    "{}, or a rank is late, which looks the same in one rank's file.": (
        "the end of an exception, without it where all ranks are compared: tests/views/overview/test_ranks.py"
    ),
    "There is no complete step to analyze.": "why nothing is said",
    "No time passes in {base}.": "why nothing is said",
    "No advice: {reason}.": "why nothing is said",
    "No advice: there is no complete {noun}.": "why nothing is said",
    "No advice: no time passes in {noun}s.": "why nothing is said: tests/views/test_zero_length.py",
    "{reason}.": "why nothing is said",
    "{count} {are} left out.": "what was read: tests/views/overview/test_words.py",
    "{count} of {times} before the file ends.": "what was read: tests/views/overview/test_words.py",
    "{waiting}.": "the end of another sentence",
    " ({place})": "part of another sentence",
    "The example comes from {origin}.": "where it is: tests/analyses/overview/test_replayed_kernels.py",
    "Savings are {bounds}: what the advice removes isn't part of the recorded schedule.": (
        "where the gains come from: tests/views/overview/test_words.py"
    ),
}
"""Templates that say nothing of who, why, or how much, with the reason."""
