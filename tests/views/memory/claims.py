"""Each sentence of Memory on peaks, leaks and trends: a trace where it holds, and one where it doesn't."""

from __future__ import annotations

from typing import Any

from tests.analyses.shared.test_memory_trends import FLAT, concatenating, growing_by
from tests.support.claims import Claim, ReadSentences, read_sentences
from tests.support.memory_traces import CALLS, leaving_on, memory, out_of_memory, steps_that_leave
from tests.support.traces import draw
from torch_tb_profiler.model.trace import Trace

GPU: dict[str, Any] = {"deviceProperties": [{"id": 0, "name": "A100", "totalGlobalMem": 10 * 2**20}]}
MIB = 2**20


def of(trace: Trace) -> str:
    return read_sentences("memory", trace)


def events(*lines: str) -> ReadSentences:
    """Read the sentences about memory events beside calls of operators."""
    return lambda: of(draw(CALLS, *memory("\n".join(lines)), **GPU))


def leaving(*sizes: int) -> ReadSentences:
    return lambda: of(steps_that_leave(*sizes))


def rising(sizes: list[int], reserved: list[int], extra: int = 0, device: str = "GPU0") -> ReadSentences:
    return lambda: of(concatenating(sizes, reserved, extra=extra, device=device))


def two_devices(leaking: str, released: bool = False, replaces: bool = False) -> ReadSentences:
    """Read the sentences about a trace of `leaving_on`."""
    return lambda: of(leaving_on(leaking, released, replaces))


def two_places(second: int) -> ReadSentences:
    """Read the sentences about two operators: one leaks a block in each step, the other `second` bytes."""
    picture, lines, total = [], [], 0
    for i in range(1, 6):
        at = 100 * i
        picture += [
            f"host user_annotation ProfilerStep#{i} {at} 100",
            f"host cpu_op aten::relu {at + 10} 10",
            f"host cpu_op aten::mul {at + 30} 10",
        ]
        total += 3000
        lines.append(f"{at + 12} GPU0 {'abcde'[i - 1]} 3000 {total} 409600")
        if second:
            total += second
            lines.append(f"{at + 32} GPU0 {'vwxyz'[i - 1]} {second} {total} 409600")
    return lambda: of(draw("\n".join(picture), *memory("\n".join(lines)), **GPU))


def failing(name: str, device: str = "GPU0") -> ReadSentences:
    failed = memory(f"115 {device} - 4096 1312 9000")
    failed[0]["name"] = name
    return lambda: of(draw(CALLS, *memory(f"20 GPU0 a 8 8 0\n21 {device} b 8 1312 9000"), *failed, **GPU))


def refusing(capacity: int, size: int, allocated: int, reserved: int) -> ReadSentences:
    """Read the sentences about a card of so many GiB that refuses a request; the other sizes are in MiB."""
    card = [{"id": 0, "name": "A100", "totalGlobalMem": capacity << 30}]
    before = memory(f"20 GPU0 a {allocated * MIB} {allocated * MIB} {reserved * MIB}")
    failed = out_of_memory("GPU0", size=size * MIB, allocated=allocated * MIB, reserved=reserved * MIB)
    return lambda: of(draw(CALLS, *before, *failed, deviceProperties=card))


BY_LINEAR, BY_RELU = f"20 GPU0 a {MIB} {2 * MIB} {4 * MIB}", f"115 GPU0 b {4 * MIB} {6 * MIB} {8 * MIB}"
GROWING = [10, 20, 30, 40, 50, 60]
MORE = [200, 220, 240, 260, 280, 300]

ELSEWHERE = (
    "At least {held} of {device} were held outside PyTorch's allocator then, likely by other processes, unless "
    "a limit of this process refused the request."
)

CLAIMS = [
    Claim(
        "Memory on {device} peaks at {peak}{outside}{most}.",
        r"Memory on GPU 0 peaks at 6\.00 MiB, 60% of its capacity",
        events(BY_LINEAR, BY_RELU),
        "the second block is smaller by half",
        events(BY_LINEAR, BY_RELU.replace(str(6 * MIB), str(4 * MIB)).replace(str(4 * MIB), str(2 * MIB), 1)),
    ),
    Claim(
        "; {name} allocated {size} of it",
        r"; aten::relu allocated 4\.00 MiB of it",
        events(BY_LINEAR, BY_RELU),
        "another operator runs then",
        events(BY_LINEAR, BY_RELU.replace("115", "30")),
    ),
    Claim(
        "; {part} allocated before the trace started",
        r"; 1\.50 MiB were allocated before the trace started",
        events(f"20 GPU0 a {MIB // 2} {2 * MIB} {4 * MIB}"),
        "all of it is allocated in the trace",
        events(f"20 GPU0 a {2 * MIB} {2 * MIB} {4 * MIB}"),
    ),
    Claim(
        "{size} were allocated during the trace; the peak wasn't recorded.",
        "512 B were allocated during the trace; the peak wasn't recorded",
        events("20 GPU0 - 512 - -"),
        "totals are recorded",
        events("20 GPU0 - 512 512 1024"),
    ),
    Claim(
        "Only {size} were allocated on {device} during the trace.",
        "Only 8 B were allocated on GPU 0 during the trace",
        events("20 GPU0 a 8 8 0"),
        "older blocks are in use as well",
        events("20 GPU0 a 8 2048 4096"),
    ),
    Claim(
        "No more than {size} are in use on {device} at any time.",
        r"No more than 2\.00 KiB are in use on GPU 0 at any time",
        events("20 GPU0 a 512 2048 4096"),
        "nothing is older than the trace",
        events("20 GPU0 a 2048 2048 4096"),
    ),
    Claim(
        "{allocations}{released}.",
        r"2 allocations on GPU 0; 2 still live at the end of the trace\.",
        events("20 GPU0 a 8 8 0", "30 GPU0 b 8 16 0"),
        "one of them is released",
        events("20 GPU0 a 8 8 0", "30 GPU0 b 8 16 0", "40 GPU0 b -8 8 0"),
    ),
    Claim(
        "; {count} still live at the end of the trace",
        "; 1 still live at the end of the trace",
        events("20 GPU0 a 8 8 0"),
        "it is released",
        events("20 GPU0 a 8 8 0", "30 GPU0 a -8 0 0"),
    ),
    Claim(
        "Up to {size} is reserved by the allocator but unused.",
        r"Up to 2\.00 KiB is reserved by the allocator but unused",
        events("20 GPU0 a 1024 1024 3072"),
        "all that is reserved is allocated",
        events("20 GPU0 a 3072 3072 3072"),
    ),
    Claim(
        "{count} ran out of memory.",
        "1 allocation ran out of memory",
        failing("[OutOfMemory]"),
        "it is an allocation like others",
        failing("[memory]"),
    ),
    Claim(
        "Memory{where} may leak {size} per {noun}, {most}from {name}.",
        r"Memory may leak 1\.00 KiB per step, from code outside operators\.",
        leaving(*[1024] * 4),
        "it is allocated once",
        leaving(1024, 0, 0, 0),
    ),
    Claim(
        "Memory{where} may leak {size} per {noun}, {most}from {name}.",
        r"per step, mostly from aten::relu\.",
        two_places(second=2000),
        "another operator leaves as much",
        two_places(second=3000),
    ),
    Claim(
        "Memory may leak {size} per {noun}: blocks that {name} allocated in {born} of {steps} {noun}s are still "
        "live at the end of the last one ({live}).",
        r"allocated in 4 of 4 steps are still live at the end of the last one \(4\.00 KiB\)",
        leaving(*[1024] * 4),
        "one of the steps leaves nothing",
        leaving(1024, 1024, 0, 1024),
    ),
    Claim(
        "The same goes for {places}.",
        r"The same goes for 1 other place\.",
        two_places(second=2000),
        "only one place keeps blocks",
        two_places(second=0),
    ),
    Claim(
        "Holds {size} at the end of {noun} {last}: {blocks}, allocated in {steps} since {noun} {since}.",
        r"Holds 4\.00 KiB at the end of step 3: 4 blocks, allocated in 4 steps since step 0\.",
        leaving(*[1024] * 4),
        "the first step leaves nothing",
        leaving(0, 1024, 1024, 1024, 1024),
    ),
    Claim(
        "No sign of a leak: no operator keeps allocating blocks that are never released.",
        "No sign of a leak",
        leaving(1000, 1000, 0, 0, 0),
        "each step leaves a block",
        leaving(*[1000] * 5),
    ),
    Claim(
        "No significant leak: blocks of several {noun}s stay allocated, but hold at most {share} of the peak.",
        r"but hold at most 0\.1% of the peak",
        leaving(25, 25, 25, 25),
        "they hold 0.4% of it",
        leaving(100, 100, 100, 100),
    ),
    Claim(
        "Live memory rises by {size} per {noun}.",
        r"Live memory rises by 10\.0 MiB per step\.",
        rising(GROWING, FLAT),
        "sizes go up and down",
        rising([10, 60, 20, 50, 30, 40], FLAT),
    ),
    Claim(
        "Live memory rises by {size} per {noun}: {name} allocates more in each {noun} than the last one "
        "released. Collect results in a list or a preallocated tensor instead of concatenating them.",
        r"Live memory rises by 10\.0 MiB per step: aten::cat allocates more",
        rising(GROWING, FLAT),
        "sizes stay",
        rising([10] * 6, FLAT),
    ),
    Claim(
        "Live memory rises by {size} per {noun}: more is allocated in each {noun} than the last one "
        "released, most of it by no single operator.",
        "most of it by no single operator",
        lambda: of(growing_by("aten::cat", "aten::stack", "aten::mul")),
        "one of them allocates two thirds",
        lambda: of(growing_by("aten::cat", "aten::cat", "aten::mul")),
    ),
    Claim(
        "Reserved memory rises by {size} per {noun}.",
        r"Reserved memory rises by 20\.0 MiB per step\.",
        rising([10] * 6, [200, 220, 240, 260, 280, 300]),
        "tensors use as much more",
        rising(GROWING, [200, 220, 240, 260, 280, 300]),
    ),
    Claim(
        "Reserved memory rises by {size} per {noun} while tensors use {used}: memory is fragmented.",
        "while tensors use no more: memory is fragmented",
        rising([10] * 6, MORE),
        "it rises once",
        rising([10] * 6, [200, 300, 300, 300, 300, 300]),
    ),
    Claim(
        "Reserved memory rises by {size} per {noun} while tensors use {used}: memory is fragmented.",
        r"while tensors use only 8\.00 MiB more: memory is fragmented",
        rising([10, 14, 18, 22, 26, 30], MORE),
        "tensors use no more",
        rising([10] * 6, MORE),
    ),
    Claim(
        "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.",
        "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        rising([10] * 6, MORE),
        "the device is Intel's, whose allocator doesn't read that",
        rising([10] * 6, MORE, device="XPU0"),
    ),
    Claim(
        "Allocate fewer different sizes (pad or bucket the inputs).",
        r"Allocate fewer different sizes \(pad or bucket the inputs\)\.",
        rising([10] * 6, MORE, device="HPU0"),
        "the device's allocator has expandable segments",
        rising([10] * 6, MORE),
    ),
    Claim(
        "Memory{where} may leak {size} per {noun}, {most}from {name}.",
        r"GPU 0 .*Memory on CPU may leak 1\.00 MiB per step, from aten::relu\.",
        two_devices(leaking="CPU"),
        "it is the memory of the device that the headline is about",
        two_devices(leaking="GPU0"),
    ),
    Claim(
        "Memory{where} may leak {size} per {noun}, {most}from {name}.",
        r"Memory may leak 1\.00 MiB per step, from aten::relu\.",
        two_devices(leaking="GPU0"),
        "all of it is released after the last step",
        two_devices(leaking="GPU0", released=True),
    ),
    Claim(
        "Live memory rises by {size} per {noun}: most of what {name} allocates stays for more than a {noun}.",
        r"Live memory rises by 1\.00 MiB per step: most of what aten::relu allocates stays for more than a step\.",
        two_devices(leaking="GPU0", released=True),
        "each step replaces its block by a larger one",
        rising(GROWING, FLAT),
    ),
    Claim(
        "Live memory rises by {size} per {noun}.",
        r"Live memory rises by",
        rising([*GROWING, 70, 80, 90], [300] * 9),
        "it has stopped: a cache is full",
        rising([*GROWING, 70, 70, 70], [300] * 9),
    ),
    Claim(
        "No sign of a leak: blocks that {name} allocated in {born} of {steps} {noun}s stay ({live}), but other "
        "memory is released instead.",
        r"blocks that aten::relu allocated in 5 of 5 steps stay \(5\.00 MiB\), but other memory is released",
        two_devices(leaking="GPU0", replaces=True),
        "nothing else is released",
        two_devices(leaking="GPU0"),
    ),
    Claim(
        "{count} on {device} ran out of memory.",
        r"^1 allocation on GPU 1 ran out of memory\. (Only|No more than).* on GPU 1 ",
        failing("[OutOfMemory]", "GPU1"),
        "it is an allocation like others",
        failing("[memory]", "GPU1"),
    ),
    Claim(
        ELSEWHERE,
        r"ran out of memory\. At least 74\.0 GiB of GPU 0 were held outside PyTorch's allocator then, likely",
        refusing(80, size=2048, allocated=3072, reserved=4096),
        "this process reserves nearly all of it",
        refusing(80, size=2048, allocated=3072, reserved=78 * 1024),
    ),
    Claim(
        ELSEWHERE,
        r"At least 2\.00 GiB of GPU 0 were held outside",
        refusing(80, size=2047, allocated=3072, reserved=76 * 1024 - 1),
        "the context of the process may be all of that",
        refusing(80, size=2048, allocated=3072, reserved=76 * 1024),
    ),
    Claim(
        ELSEWHERE,
        "were held outside PyTorch's allocator",
        refusing(80, size=2048, allocated=3072, reserved=4096),
        "the request is as large as what is left",
        refusing(80, size=76 * 1024, allocated=3072, reserved=4096),
    ),
    Claim(
        ELSEWHERE,
        "were held outside PyTorch's allocator",
        refusing(80, size=2048, allocated=3072, reserved=4096),
        "tensors use more than is reserved: the allocator's own figures are missing",
        refusing(80, size=2048, allocated=3072, reserved=0),
    ),
]

NO_CLAIMS = {
    "No memory events were recorded ({option}).": "why nothing is said",
    "This recording is a memory snapshot.": "what was recorded",
    "Too few {noun}s to check for leaks; record at least {count}.": "why nothing is said",
    "Can't check for leaks: {reason}.": "why nothing is said",
    "{device} had {reserved} reserved, {allocated} of it in use{peak}.": (
        "a snapshot: tests/views/memory/test_files.py"
    ),
    "{blocks} in {segments}; {free} cached for reuse, the largest block {largest}.": (
        "a snapshot: tests/views/memory/test_files.py"
    ),
    "The timeline records no memory in use.": "why nothing is said",
}
"""Templates that say nothing of who, why, or how much of a trace, with the reason."""
