"""Each sentence of the Critical path on what bounds a step and what saves time: where it holds, and where not."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tests.analyses.overview.kernel_calls import H100, SM90, STEP, events, product
from tests.analyses.overview.kernel_calls import SYNC as SYNC_OF_STEP
from tests.support.claims import Claim, ReadSentences, launched, read_sentences, repeat
from tests.support.random_jobs.surfaces import found_texts
from tests.support.simulation.simulator import (
    Action,
    Copy,
    Delay,
    SimulatedKernel,
    Simulation,
    ddp,
    pipeline,
    with_idle_stage,
)
from tests.support.traces import event, read
from tests.views.critical_path.test_beside import answers, faster_network
from tests.views.critical_path.test_roofline import ROOF_US, answer
from torch_tb_profiler.analyses.distributed.job_path import reduce_path
from torch_tb_profiler.analyses.distributed.rank_details import rank_details
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import Member, Members
from torch_tb_profiler.views.critical_path.build import build as path_alone
from torch_tb_profiler.views.critical_path.payload import CriticalPathParams, JobPathParams
from torch_tb_profiler.views.critical_path.ranks import build

SYNC = "host cuda_runtime cudaDeviceSynchronize 30 8990"


def of(trace: Trace) -> str:
    return read_sentences("critical_path", trace)


def steps(*lines: str, count: int = 4) -> ReadSentences:
    return lambda: of(repeat(*lines, steps=count))


def products(ratio: float) -> ReadSentences:
    """Read the sentences about products that take so many times what their roofline allows."""
    return lambda: " ".join(text for _, text in found_texts(answer(ratio * ROOF_US), ""))


def copies_and_products(copy: int) -> ReadSentences:
    """Read the sentences about products near their roofline and a copy of so many us before them."""
    calls = [product(SM90, 8192, time=1.25 * ROOF_US)] * 20
    after = 1_000 + 25 * ROOF_US
    trace = [
        {**STEP, "dur": 1_000 + after + copy},
        {**SYNC_OF_STEP, "dur": after + copy},
        *events(*calls),
        event("host cuda_runtime cudaMemcpyAsync 20 5 correlation=900"),
        event(f"gpu0 gpu_memcpy Memcpy~HtoD~(Pinned~->~Device) {after + 200} {copy} correlation=900 stream=7"),
    ]
    return lambda: " ".join(
        text for _, text in found_texts(path_alone(read(trace, deviceProperties=[H100]), CriticalPathParams()), "")
    )


def beside(simulation: Simulation, rank: int, only: Sequence[int] | None = None) -> ReadSentences:
    """Read the sentences about a rank beside the others, or those of `only` whose files exist."""
    return lambda: " ".join(text for _, text in found_texts(answers(simulation.run(), rank, only=only)[1], ""))


def job(*delays: Delay, transfer: float = 1.0) -> Simulation:
    everyone = Simulation(ddp(4, overlap=False), delays=delays, syncs=True)
    return faster_network(everyone, transfer)


def stalling(*ranks: int) -> Simulation:
    """Return a job of two collectives per step; these ranks are late at the first, the second shows its time."""
    delays = [Delay("host", rank, us=4_000) for rank in ranks]
    return Simulation(ddp(4, 2, overlap=False), steps=5, delays=delays, syncs=True)


def passing(action: Action) -> Simulation:
    """Return a pipeline of which each stage does something for its first batch."""
    programs = [[*program[:3], action, *program[3:]] for program in pipeline(3, 3)]
    return Simulation(programs, syncs=True)


def path_of_job(simulation: Simulation, only: Sequence[int] | None = None) -> ReadSentences:
    def read_path() -> str:
        recorded = simulation.run()
        members = []
        for rank in range(len(recorded.spans)) if only is None else only:
            trace = recorded.trace(rank)
            details = partial(rank_details, trace)
            members.append(Member(f"rank{rank}", rank, "1", "ready", None, reduce_path(trace), details))
        return " ".join(text for _, text in found_texts(build(Members(members), JobPathParams()), ""))

    return read_path


def waiting(kernel: int) -> ReadSentences:
    """Read the sentences about a host that waits for four kernels of so many us, then works until the end."""
    kernels = [launched(f"gemm_{i}", 40 + (kernel + 1) * i, kernel, 10 + 6 * i, i) for i in range(4)]
    end = 50 + 4 * kernel
    return steps(
        *kernels,
        f"host cpu_op aten::item 50 {end - 50}",
        f"host cuda_runtime cudaStreamSynchronize 51 {end - 52}",
        f"host cpu_op aten::mul {end} {10_000 - end}",
    )


COPY = "host cuda_runtime cudaMemcpyAsync 16 5 correlation=2\ngpu0 gpu_memcpy Memcpy~HtoD~(Pinned~->~Device) " + (
    "4021 4900 correlation=2 stream=7"
)


def freeing(call: str) -> tuple[str, ...]:
    """Let the host wait for 3.9 ms in a call until the device has finished, and work for 4 ms then."""
    return (
        launched("first", 20, 3_980, 10),
        f"host cuda_runtime {call} 100 3910",
        launched("second", 8_010, 990, 8_000, 2),
        "host cuda_runtime cudaDeviceSynchronize 8100 905",
    )


BUSY = steps(launched("gemm", 20, 9_000, 10), SYNC)
HOST = steps(
    "host cpu_op aten::sort 0 8000", launched("gemm", 8_100, 800, 8_050), "host cpu_op aten::add 9100 800"
)
LATE = job(Delay("host", 2, us=5000))
OVERLAPPED = steps(
    launched("gemm", 20, 9_000, 10),
    launched("ncclDevKernel_AllReduce_Sum_f32", 30, 8_980, 16, 2, 20),
    SYNC.replace("8990", "8995"),
)
"""Kernels and communication that take about as long, at the same time."""

CLAIMS = [
    Claim(
        "{base} is {likely}{bound}: {share} of its critical path is {part}.",
        r"An average step is GPU-bound: 9\d(\.\d)?% of its critical path is kernels and copies\.",
        BUSY,
        "the host works as long while the kernel runs, and doesn't wait for it",
        steps(launched("gemm", 20, 9_000, 10), "host cpu_op aten::sort 30 9900"),
    ),
    Claim(
        "The largest part of the critical path of {base} is {likely}{part} ({share}).",
        r"The largest part of the critical path of an average step is kernels and copies \(4\d\.?\d?%\)",
        steps(
            "host cpu_op aten::sort 0 3000",
            launched("gemm", 3_020, 4_200, 3_010),
            "gpu0 kernel ncclDevKernel_AllReduce_Sum_f32 7221 2700 stream=20 correlation=2",
            "host cuda_runtime cudaLaunchKernel 3016 2 correlation=2",
            "host cuda_runtime cudaDeviceSynchronize 3030 6900",
        ),
        "the operator takes as long as both",
        steps(
            "host cpu_op aten::sort 0 6000",
            launched("gemm", 6_020, 2_200, 6_010),
            "gpu0 kernel ncclDevKernel_AllReduce_Sum_f32 8221 1700 stream=20 correlation=2",
            "host cuda_runtime cudaLaunchKernel 6016 2 correlation=2",
            "host cuda_runtime cudaDeviceSynchronize 6030 3900",
        ),
    ),
    Claim(
        "Making {it} twice as fast would cut {step}{before} to {then}{condition}.",
        r"Making them twice as fast would cut the step from 10\.0 ms to 5\.5\d ms\.",
        BUSY,
        "the host takes as long anyway",
        steps(launched("gemm", 20, 9_000, 10), "host cpu_op aten::sort 30 9900"),
    ),
    Claim(
        "Making {it} twice as fast wouldn't shorten {step} ({now}).",
        r"Making them twice as fast wouldn't shorten the step",
        OVERLAPPED,
        "only kernels are on the path",
        BUSY,
    ),
    Claim(
        "Speedups of up to 2× ({within} their roofline) would cut {step} to {then}{condition}.",
        r"Speedups of up to 2× \(within their roofline\) would cut the step to",
        products(1.25),
        "they take more than twice their roofline",
        products(2.5),
    ),
    Claim(
        "They run at their roofline, so faster ones can't shorten {step}.",
        "They run at their roofline",
        products(1.002),
        "they take a quarter more",
        products(1.25),
    ),
    Claim(
        "Kernels run at their roofline, so they can't be notably faster.",
        "Kernels run at their roofline",
        products(1.002),
        "they take a quarter more",
        products(1.25),
    ),
    Claim(
        "Kernels up to twice as fast (within their roofline) would save {most}{saved}.",
        r"Kernels up to twice as fast \(within their roofline\) would save",
        products(1.25),
        "they take more than twice their roofline",
        products(2.5),
    ),
    Claim(
        "Kernels and copies up to twice as fast (kernels within their roofline) would save {most}{saved}.",
        r"Kernels and copies up to twice as fast \(kernels within their roofline\) would save",
        copies_and_products(2_000),
        "copies take next to no time",
        copies_and_products(2),
    ),
    Claim(
        "Speedups of up to 2× ({within} their roofline) would cut {step} to {then}{condition}.",
        r"up to 2× \(kernels within their roofline",
        copies_and_products(2_000),
        "copies take next to no time",
        copies_and_products(2),
    ),
    Claim(
        "Making {it} twice as fast would cut {step}{before} to {then}{condition}.",
        r"Making them twice as fast would cut the step to [\d.]+ ms at best\.",
        steps(
            launched("gemm", 20, 8_000, 10),
            launched("ncclDevKernel_AllReduce_Sum_f32", 8_021, 900, 16, 2, 20),
            SYNC,
        ),
        "nothing communicates",
        BUSY,
    ),
    Claim(
        "{work} twice as fast would save {most}{saved}.",
        r"Kernels and copies twice as fast would save 4\.\d+ ms\.",
        steps(launched("gemm", 20, 4_000, 10), COPY, SYNC),
        "there are no copies",
        BUSY,
    ),
    Claim(
        "{work} twice as fast would save {most}{saved}.",
        r"Kernels twice as fast would save 4\.50 ms\.",
        BUSY,
        "the host takes as long anyway",
        steps(launched("gemm", 20, 9_000, 10), "host cpu_op aten::sort 30 9900"),
    ),
    Claim(
        "Faster kernels wouldn't help.",
        r"Faster kernels wouldn't help\.",
        steps(launched("gemm", 20, 9_000, 10), "host cpu_op aten::sort 30 9900"),
        "the host waits for them",
        BUSY,
    ),
    Claim(
        "{subject} accounts for {time} of the critical path; removing it would cut {step} to {then}{condition}.",
        r"aten::sort accounts for 8\.00 ms of the critical path; removing it would cut the step to 2\.00 ms\.",
        HOST,
        "another operator takes that time",
        steps(
            "host cpu_op aten::mul 0 8000", launched("gemm", 8_100, 800, 8_050), "host cpu_op aten::add 9100 800"
        ),
    ),
    Claim(
        "Removing the waits in {subject} would cut {step} to {then}{condition}.",
        r"Removing the waits in aten::item would cut the step to 5\.\d\d ms\.",
        waiting(kernel=1_250),
        "the host has nothing to do after it",
        waiting(kernel=2_480),
    ),
    Claim(
        "Removing {subject}, with their waits for the device, would cut {step} to {then}{condition}.",
        r"Removing the allocator's calls, with their waits for the device, would cut the step to 6\.\d\d ms\.",
        steps(*freeing("cudaFree")),
        "the call copies instead of freeing",
        steps(*freeing("cudaMemcpy")),
    ),
    Claim(
        "{subject} is {share} of the critical path. Removing it would cut {step} from {now} to {then}{condition}.",
        r"aten::sort is 80% of the critical path\. Removing it would cut the step from 10\.0 ms to 2\.00 ms\.",
        steps("host cpu_op aten::sort 0 8000", "host cpu_op aten::add 9100 800"),
        "it runs on another thread",
        steps("host2 cpu_op aten::sort 0 8000", "host cpu_op aten::add 9100 800"),
    ),
    Claim(
        "Only the host was recorded, so this path follows its main thread. Waits on other threads or processes "
        "aren't recorded.",
        "Only the host was recorded",
        steps("host cpu_op aten::sort 0 8000"),
        "a device works",
        BUSY,
    ),
    Claim(
        "Only the host was recorded, so this path follows its main thread, including its waits for the device.",
        r"^What limits an average step is unknown: kernels were launched, but the profiler didn't record the "
        r"device\. "
        r"Only the host was recorded, so this path follows its main thread, including its waits for the "
        r"device\.",
        steps("host cuda_runtime cudaLaunchKernel 10 5 correlation=1", "host cpu_op aten::item 100 9000"),
        "no kernel is launched, so nothing waits for one",
        steps("host cpu_op aten::item 100 9000"),
    ),
    Claim(
        "What limits {base} is unknown: {reason}.",
        r"^What limits an average step is unknown: the recorded launches and syncs don't explain when the device "
        r"work in complete steps starts\. Estimates",
        steps("gpu0 kernel gemm 100 50 stream=7", launched("gemm", 9_960, 40, 10)),
        "they start right after their launches",
        BUSY,
    ),
    Claim(
        "This is uncertain: {reason}.",
        r"^An average step is likely host-bound: .* This is uncertain: the recorded launches and syncs explain "
        r"the start of only 50% of the device work in complete steps\.",
        steps(
            launched("gemm", 20, 100, 10), launched("gemm", 5_000, 100, 30, 2), "host cpu_op aten::sort 40 9900"
        ),
        "both start right after their launches",
        steps(
            launched("gemm", 20, 100, 10), launched("gemm", 135, 100, 125, 2), "host cpu_op aten::sort 140 9800"
        ),
    ),
    Claim(
        "Faster work on this rank alone would only make it wait longer.",
        r"Faster work on this rank alone would only make it wait longer\.",
        beside(LATE, 0),
        "it is the late rank itself",
        beside(LATE, 2),
    ),
    Claim(
        "Faster work on this rank alone would only make it wait longer.",
        r"Faster work on this rank alone would only make it wait longer\.",
        beside(stalling(3), 0, only=(0, 1, 2)),
        "the missing rank isn't late",
        beside(stalling(), 0, only=(0, 1, 2)),
    ),
    Claim(
        "A faster network wouldn't help.",
        r"A faster network wouldn't help\.",
        beside(job(Delay("host", 2, us=50_000), transfer=0.01), 0),
        "transfers take as long as the delay",
        beside(job(Delay("host", 2, us=50_000), transfer=8.0), 0),
    ),
    Claim(
        "A faster network would save at most {saved}{where}.",
        r"at most \d.*, including transfers between the ranks that this one waits for\.",
        beside(Simulation(with_idle_stage(8, 7), steps=4, jitter=0.01, syncs=True), 7),
        "all ranks transfer at once",
        beside(job(Delay("host", 2, us=50_000), transfer=8.0), 0),
    ),
    Claim(
        "A faster network would save at most {saved}{where}.",
        "A faster network would save at most ",
        beside(job(Delay("host", 2, us=50_000), transfer=8.0), 0),
        "transfers take next to no time",
        beside(job(Delay("host", 2, us=50_000), transfer=0.01), 0),
    ),
    Claim(
        "What-ifs of communication shorten only the transfer, so that is the most they can save.",
        "What-ifs of communication shorten only the transfer",
        beside(LATE, 0),
        "the rank is alone",
        lambda: " ".join(text for _, text in found_texts(answers(LATE.run(), 0)[0], "")),
    ),
    Claim(
        "Communication includes waiting for other ranks, which a faster network doesn't shorten; {distributed} "
        "tells them apart.",
        "Communication includes waiting for other ranks",
        lambda: of(LATE.run().trace(0)),
        "nothing communicates",
        BUSY,
    ),
    Claim(
        "No recorded call waits for the device. Where the host does nothing until right after the device "
        "finishes, it is assumed to be waiting.",
        "it is assumed to be waiting",
        steps(launched("gemm", 20, 9_000, 10), "host cpu_op aten::item 30 8995", "host cpu_op aten::add 9030 900"),
        "it does something then, or such a call is recorded",
        steps(launched("gemm", 20, 9_000, 10), "host cpu_op aten::item 30 8995", SYNC),
    ),
    Claim(
        "Some communication has no recorded launch, so no path leads through it: where the host waits for it, "
        "that looks like host code.",
        "no path leads through it",
        steps(launched("gemm", 20, 9_000, 10), "gpu0 kernel ncclDevKernel_AllReduce 9020 500 stream=7", SYNC),
        "it has one",
        steps(launched("gemm", 20, 9_000, 10), launched("ncclDevKernel_AllReduce", 9_020, 500, 12), SYNC),
    ),
    Claim(
        "{share} of {path} is on {name}",
        r"9\d(\.\d)?% of the job's critical path is on rank 2",
        path_of_job(job(Delay("host", 2, us=50_000))),
        "another rank is late",
        path_of_job(job(Delay("host", 1, us=50_000))),
    ),
    Claim(
        "{share} of {path} is on {name}",
        "100% of the critical path of the ranks found is on rank 2",
        path_of_job(job(Delay("host", 2, us=50_000)), only=(0, 1, 2)),
        "the missing rank is late, so that the path isn't on the ranks found",
        path_of_job(job(Delay("host", 3, us=50_000)), only=(0, 1, 2)),
    ),
    Claim(
        "{share} of {path} is on {name}",
        "critical path of the job|critical path of the ranks found|the job's critical path",
        path_of_job(job(Delay("host", 2, us=50_000))),
        "all ranks found wait for a missing one",
        path_of_job(job(Delay("host", 3, us=50_000)), only=(0, 1, 2)),
    ),
    Claim(
        "{finding}, including {parts} per {noun}.",
        r", including 5\d\.\d ms of kernels(?: and .*)? per step",
        path_of_job(job(Delay("work", 2, us=50_000))),
        "its host is late instead, and kernels take less",
        path_of_job(job(Delay("host", 2, us=50_000))),
    ),
    Claim(
        "{finding}, including {parts} per {noun}.",
        r", including 5\d\.\d ms of operators per step\.",
        path_of_job(job(Delay("host", 2, us=50_000))),
        "it loads data for as long",
        path_of_job(job(Delay("loading", 2, us=50_000))),
    ),
    Claim(
        "{finding}, including {parts} in {steps} together.",
        r", including 5\d\.\d ms of operators in 4 steps together\.",
        path_of_job(job(Delay("host", 2, us=50_000, steps=(2,)))),
        "it is as late in every step",
        path_of_job(job(Delay("host", 2, us=50_000))),
    ),
    Claim(
        "Copies of {ranks} take {time} of that path per {noun} together, {share}.",
        r"Copies of 3 ranks take 60\d µs of that path per step together, 4\.\d%\.",
        path_of_job(passing(Copy(200))),
        "kernels take it",
        path_of_job(passing(SimulatedKernel("cast", 200))),
    ),
    Claim(
        "Copies of {ranks} take {time} of that path per {noun} together, {share}.",
        r"Copies of 3 ranks take ",
        path_of_job(passing(Copy(200))),
        "each stage has enough of them to tell by itself",
        path_of_job(passing(Copy(600))),
    ),
]


NO_CLAIMS = {
    "Estimates replay the recorded schedule with shorter parts. They ignore contention for SMs and memory, clock "
    "speeds, the GIL, locks, what the allocator would do instead, and that operators are slower after memory was "
    "freed. Estimates in the table also ignore how fast a kernel can get. Removing a wait assumes that the host "
    "doesn't need the result. The profiler's own overhead is included.": ("what no estimate knows"),
    "No time passes in {base}.": "why nothing is said",
    "No rank has a complete {noun}, so there is no critical path.": "why nothing is said",
    "{finding}.": "the end of another sentence",
}
"""Templates that say nothing of who, why, or how much, with the reason."""
