"""Each sentence of the timeline on what it shows: a trace where it holds, and one where it doesn't."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from tests.model.schedule.test_unrecorded_waits import ITEM, training
from tests.support.claims import Claim, ReadSentences
from tests.support.jobs import BASE_NS
from tests.support.random_jobs.surfaces import found_texts
from tests.support.traces import document, draw, event, read, read_bytes
from tests.views.trace.pictures import WAITING
from torch_tb_profiler.model.trace import ClockKind, Trace
from torch_tb_profiler.views import find_view

WORK = """
host  cpu_op        aten::mm      0   10
host  cuda_runtime  cudaLaunch    2    2   correlation=1
gpu0  kernel        gemm         20   40   correlation=1 stream=7
gpu0  kernel        add          80    5   stream=7
host  cpu_op        end          90   10
"""
LONGER = WORK.replace("20   40", "20   50")
TWO_DEVICES = WORK + "gpu1 kernel relu 10 {} device=1 stream=7\n"
COMMUNICATION = """
host  cpu_op        start         0    1
gpu0  kernel        gemm         10   30   device=0 stream=7
gpu0  kernel        ncclDevKernel_AllReduce_Sum  {}   40   device=0 stream=8
host  cpu_op        end          99    1
"""
OVERLAPPED, EXPOSED = COMMUNICATION.format(30), COMMUNICATION.format(45)
HOST = """
host  cpu_op  outer   0  100
host  cpu_op  inner  10   60
"""
MODULE = "host python_function nn.Module:~Net_0 0 50\nhost cpu_op a 10 5\nhost cpu_op b 60 5"
MODULE_AROUND = MODULE.replace("0 50", "0 90")


def cut(picture: str) -> Trace:
    """Return what is left of a trace without its last 25 bytes."""
    return read_bytes(document([event(line) for line in picture.strip().splitlines()])[:-25])


ALLOCATION: dict[str, Any] = {
    "ph": "i",
    "s": "t",
    "name": "[memory]",
    "pid": 1,
    "tid": 1,
    "ts": 5,
    "args": {"Device Type": 1, "Device Id": 0, "Addr": 1, "Bytes": 512, "Total Allocated": 512},
}


NO_TIME_OF_DAY: tuple[tuple[ClockKind, str], ...] = (
    ("epoch", "No time of day: the file doesn't record when its clock started."),
    ("boot", "No time of day: times count from boot, and the file doesn't record when the machine booted."),
    ("iteration", "No time of day: each iteration's times count from its own start."),
    ("local", "No time of day: the file doesn't record its time zone."),
)


def of_clock(clock: ClockKind, known: bool = False) -> ReadSentences:
    """Read the sentences about a trace whose times count from there, and whether its start is known."""
    base = {"baseTimeNanoseconds": BASE_NS} if known else {}
    return lambda: ask("trace", replace(draw(WORK, **base), clock="epoch" if known else clock))


def ask(slug: str, trace: Trace, **params: object) -> str:
    """Return every sentence of an answer."""
    view: Any = find_view(slug)
    return "\n".join(sentence for _, sentence in found_texts(view.build(trace, view.params(**params)), ""))


def ask_view(slug: str, picture: str, **params: object) -> ReadSentences:
    return lambda: ask(slug, draw(picture), **params)


def whole(picture: str) -> ReadSentences:
    """Read the sentences about a whole recording."""
    return ask_view("trace", picture)


def window(picture: str, begin: int = 0, end: int = 100_000) -> ReadSentences:
    """Read the sentences about a window in ns."""
    return ask_view("trace/headline", picture, begin=begin, end=end)


def left(slug: str, picture: str, begin: int = 0, end: int = 100_000) -> ReadSentences:
    """Read the sentences about a window in ns of a truncated file."""
    return lambda: ask(slug, cut(picture), begin=begin, end=end)


def selection(picture: str, begin: int = 0, end: int = 100_000) -> ReadSentences:
    return ask_view("trace/selection", picture, begin=begin, end=end)


def of_event(picture: str, row: int) -> ReadSentences:
    return ask_view("trace/event", picture, event=row)


def flows(picture: str, row: int) -> ReadSentences:
    return ask_view("trace/flows", picture, event=row)


def module(picture: str, row: int) -> ReadSentences:
    return ask_view("trace/module", picture, event=row)


def search(query: str, *, regex: bool = False) -> ReadSentences:
    return ask_view("trace/search", WORK, query=query, regex=regex)


def moment(at: int, picture: str = WAITING) -> ReadSentences:
    return ask_view("trace/moment", picture, device=0, at=at)


def samples(*times: int) -> ReadSentences:
    """Read the sentences about a counter with samples at these times in us, and nothing else."""
    counter = {"ph": "C", "name": "memory", "pid": 1, "args": {"bytes": 1}}
    return lambda: ask("trace", read([{**counter, "ts": time} for time in times]))


def untimed(**more: object) -> ReadSentences:
    """Read the sentences about one slice without a time."""
    slice_ = {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "dur": 1}
    return lambda: ask("trace", read([{**slice_, **more}]))


LINE = "cudaLaunchKernel                      {}"
SUBMITTED = WAITING.replace(LINE.format(150), LINE.format(76))
LAUNCH = """
host  cuda_runtime  cudaLaunch   10    2   correlation=1
gpu0  kernel        gemm      {}   40   correlation=1 stream=7
"""
STEPS = """
host  user_annotation  ProfilerStep#1    0  200
host  user_annotation  ProfilerStep#2  200  200
host  cpu_op           aten::mm       {}   40
"""

CLAIMS = [
    # ---- the whole recording
    Claim(
        "{subject} is busy {share} of the {total} recorded.",
        r"GPU 0 is busy 45% of the 100 µs recorded\.",
        whole(WORK),
        "a kernel takes 10 µs more",
        whole(LONGER),
    ),
    Claim(
        "CPU only: {amount} in {total}, no GPU work.",
        r"CPU only: 2 slices in 100 µs, no GPU work\.",
        whole(HOST),
        "a kernel runs",
        whole(HOST + "gpu0 kernel gemm 20 5 stream=7"),
    ),
    Claim(
        "Counters only: {samples} in {length}.",
        r"Counters only: 2 samples in 10\.0 µs\.",
        samples(5, 15),
        "they are twice as far apart",
        samples(5, 25),
    ),
    Claim(
        "Counters only: {samples}, all at the same time.",
        r"Counters only: 2 samples, all at the same time\.",
        samples(5, 5),
        "one is later",
        samples(5, 15),
    ),
    Claim(
        "No slice or instant in this trace has a timestamp, so there is nothing to draw.",
        "No slice or instant in this trace has a timestamp",
        untimed(),
        "its only slice has one",
        untimed(ts=5),
    ),
    # ---- a window
    Claim(
        "{subject} is busy {share} of this window; {top} takes the most time.",
        r"GPU 1, the busiest of 2 devices, is busy 60% of this window; relu takes the most time\.",
        window(TWO_DEVICES.format(60)),
        "its kernel takes 20 µs",
        window(TWO_DEVICES.format(20)),
    ),
    Claim(
        "No device work runs in this window.",
        r"No device work runs in this window\.",
        window(WORK, 0, 15_000),
        "it reaches into a kernel",
        window(WORK, 0, 25_000),
    ),
    Claim(
        "Nothing runs in this window.",
        r"Nothing runs in this window\.",
        window(HOST, 200_000, 300_000),
        "it begins within an operator",
        window(HOST, 90_000, 300_000),
    ),
    Claim(
        "{top} has the most self time: {share} of this window.",
        r"inner has the most self time: 60% of this window\.",
        window(HOST),
        "it ends after 20 µs",
        window(HOST.replace("10   60", "10   20")),
    ),
    Claim(
        "{length} shown: {slices} with {names}{place}.",
        r"100 µs shown: 2 slices with 2 names on streams\.",
        window(WORK),
        "both kernels have one name",
        window(WORK.replace("kernel        add ", "kernel        gemm")),
    ),
    Claim(
        "{overlap} of its communication overlaps compute.",
        r"25% of its communication overlaps compute\.",
        window(OVERLAPPED),
        "it begins after the kernel ends",
        window(EXPOSED),
    ),
    Claim(
        "The file is truncated. In what remains of this window, {top} takes the most time.",
        r"The file is truncated\. In what remains of this window, gemm takes the most time\.",
        left("trace/headline", WORK),
        "the file is whole",
        window(WORK),
    ),
    Claim(
        "The file is truncated and has nothing left in this window.",
        r"The file is truncated and has nothing left in this window\.",
        left("trace/headline", WORK, 200_000, 300_000),
        "a kernel is left there",
        left("trace/headline", WORK),
    ),
    # ---- a selection
    Claim(
        "{label}: busy {busy} ({share}), idle {idle}",
        r"GPU 0: busy 45\.0 µs \(45%\), idle 55\.0 µs",
        selection(WORK),
        "a kernel takes 10 µs more",
        selection(LONGER),
    ),
    Claim(
        "{busy}; communication {communication}, {overlap} overlapped with compute.",
        r"; communication 40\.0 µs, 10\.0 µs overlapped with compute\.",
        selection(OVERLAPPED),
        "it begins after the kernel ends",
        selection(EXPOSED),
    ),
    Claim(
        "No device work was recorded.",
        r"No device work was recorded\.",
        selection(HOST),
        "a kernel runs",
        selection(HOST + "gpu0 kernel gemm 20 5 stream=7"),
    ),
    Claim(
        "{label}: {busy} of work in what remains of the file.",
        r"GPU 0: 45\.0 µs of work in what remains of the file\.",
        left("trace/selection", WORK),
        "the file is whole",
        selection(WORK),
    ),
    Claim(
        "The file is truncated and has no device work left.",
        r"The file is truncated and has no device work left\.",
        left("trace/selection", HOST),
        "a kernel is left",
        left("trace/selection", WORK),
    ),
    # ---- an event
    Claim(
        "{sentence}{step}.",
        r"Operator, 40\.0 µs, in step 1\.",
        of_event(STEPS.format(10), 2),
        "it begins in the next step",
        of_event(STEPS.format(210), 2),
    ),
    Claim(
        "This runs outside any module.",
        r"This runs outside any module\.",
        module(MODULE, 2),
        "the module is around it",
        module(MODULE_AROUND, 2),
    ),
    Claim(
        "No `nn.Module` was recorded ({option}).",
        r"No `nn\.Module` was recorded",
        module(HOST, 1),
        "one was, elsewhere",
        module(MODULE, 2),
    ),
    Claim(
        "It launched {slices}.",
        r"It launched 1 device slice\.",
        flows(WORK, 1),
        "no kernel has the number of this call",
        flows(WORK.replace("correlation=1 stream", "correlation=2 stream"), 1),
    ),
    Claim(
        "It waited {delay} in the queue.",
        r"It waited 18\.0 µs in the queue\.",
        flows(WORK, 2),
        "it begins before the call",
        flows(LAUNCH.format(7), 1),
    ),
    Claim(
        "Its timestamps put its start {early} before its launch: the host and device clocks disagree.",
        r"Its timestamps put its start 3\.00 µs before its launch: the host and device clocks disagree\.",
        flows(LAUNCH.format(7), 1),
        "it begins after the call",
        flows(LAUNCH.format(17), 1),
    ),
    # ---- a search
    Claim(
        "{amount} on {tracks} {match} “{query}”.",
        r"2 slices and instants on 2 tracks match “m”\.",
        search("m"),
        "one of them has this name",
        search("gemm"),
    ),
    Claim(
        "No slice or instant has “{query}” in its name.",
        r"No slice or instant has “[^”]+” in its name\.",
        search("gemv"),
        "one has",
        search("gemm"),
    ),
    Claim(
        "No slice or instant matches “{query}”.",
        r"No slice or instant matches “[^”]+”\.",
        search("^g.v$", regex=True),
        "one does",
        search("^g.m*$", regex=True),
    ),
    # ---- a moment of a device
    Claim(
        "{device} runs {name} for {time}.",
        r"GPU 0 runs gemm for 43\.0 µs\.",
        moment(100_000),
        "another kernel runs then",
        moment(170_000),
    ),
    Claim(
        "{device} is idle for {time}{of_gap}, {cause}.",
        r"GPU 0 is idle for 60\.0 µs of this 77\.0 µs gap, waiting for data loading\.",
        moment(30_000),
        "an operator runs then",
        moment(30_000, WAITING.replace("enumerate(DataLoader)#_It.__next__", "aten::sort")),
    ),
    Claim(
        "{call} drained the queue before this gap.",
        r"cudaStreamSynchronize drained the queue before this gap\.",
        moment(155_000),
        "the next kernel is submitted before the call returns",
        moment(
            130_000,
            WAITING.replace(
                "cudaLaunchKernel                      150", "cudaLaunchKernel                       76"
            ),
        ),
    ),
    Claim(
        "No sync caused this: {device} simply caught up with the host.",
        r"No sync caused this: GPU 0 simply caught up with the host\.",
        lambda: ask("trace/moment", training(ITEM, returns=100), device=0, at=2_300_000),
        "the host goes on right after the device is done",
        lambda: ask("trace/moment", training(ITEM), device=0, at=2_300_000),
    ),
    # ---- what is missing
    Claim(
        "No steps in this trace ({}), so it's shown as one.",
        "No steps in this trace ",
        whole(WORK),
        "it has one",
        whole("host user_annotation ProfilerStep#1 0 100\n" + WORK),
    ),
    Claim(
        "No SM efficiency: the kernels in this trace have no `blocks per SM`.",
        "No SM efficiency: the kernels in this trace have no `blocks per SM`.",
        whole(WORK),
        "they have",
        whole(WORK.replace("stream=7", "stream=7 blocks per SM=2.5")),
    ),
    Claim(
        "No allocations were recorded ({}).",
        "No allocations were recorded ",
        whole(WORK),
        "one was",
        lambda: ask("trace", draw(WORK, ALLOCATION)),
    ),
    *(
        Claim(template, template, of_clock(clock), "the file says when it started", of_clock(clock, known=True))
        for clock, template in NO_TIME_OF_DAY
    ),
    Claim(
        "No launch: no runtime or driver call with the same `correlation` was recorded.",
        "No launch: no runtime or driver call with the same `correlation` was recorded.",
        ask_view("trace/event", WORK, event=3),
        "the call that launched it was",
        ask_view("trace/event", WORK, event=2),
    ),
    Claim(
        "No operator encloses the launch.",
        "No operator encloses the launch.",
        ask_view("trace/event", WORK, event=3),
        "one does",
        ask_view("trace/event", WORK, event=2),
    ),
    Claim(
        "No Python stack was recorded here ({}).",
        "No Python stack was recorded here ",
        ask_view("trace/event", WORK, event=2),
        "a frame is around the launch",
        ask_view("trace/event", WORK + "host python_function train.py(1):~step 0 100\n", event=2),
    ),
]

NO_CLAIMS = {
    "{busy}.": "the end of another sentence",
    "No Python stack: a graph launch ran this, not a call of the program.": (
        "of replayed kernels: tests/views/test_origin_event.py, and of launched ones the next sentence"
    ),
}
"""Templates that say nothing that a trace could make false, with the reason."""
