"""Read what people save beside flight recorder dumps: stacks of a rank, and the log of the job.

Stacks are of `py-spy dump --pid N` or `faulthandler.dump_traceback`:

Process 48213: python train.py                       Thread 0x00007f31c2ffd740 (most recent call first):
Thread 48213 (idle): "MainThread"                      File "/job/train.py", line 88 in load_batch
    load_batch (train.py:88)                           File "/job/train.py", line 231 in <module>
    <module> (train.py:231)

In a log, NCCL's watchdog reports the calls that it gave up:

[rank2]:[E1206 18:44:12.71 ProcessGroupNCCL.cpp:616] [PG ID 1 PG GUID 1(dp) Rank 0] Watchdog caught collective
operation timeout: WorkNCCL(SeqNum=418, OpType=ALLREDUCE, ..., Timeout(ms)=600000) ran for 600061 milliseconds
before timing out.

The rank at the start of a line is global, the one in the second bracket is that within the group. Older versions
write `[Rank 0]` or `[PG 1 Rank 0]`, and nothing at the start.
"""

from __future__ import annotations

from typing import BinaryIO

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.model.flight_recorder import RecordedFrame, StackDump, WatchdogTimeout

MAX_BYTES = 16 * 2**20
"""Most bytes that are read: of stacks from the start, as a process with hundreds of threads takes less than 1 MB;
of a log from its end, where the watchdog's reports are."""

MAX_FRAMES = 256
"""Frames of a stack that are kept, the innermost ones; recursion may be thousands deep."""

_PY_SPY_THREAD = lazy_regex(r'^Thread (?:0x[0-9A-Fa-f]+|\d+) \([^)]*\)(?:: "(?P<name>.*)")?')
_PY_SPY_FRAME = lazy_regex(r"^\s+(?P<function>.+?) \((?P<file>.+?)(?::(?P<line>\d{1,9}))?\)$")
_FAULTHANDLER_THREAD = lazy_regex(r"^(?:Current thread|Thread|Stack) .*\(most recent call first\):$")
_FAULTHANDLER_FRAME = lazy_regex(r'^\s+File "(?P<file>.*)", line (?P<line>\d{1,9}) in (?P<function>.*)$')
_TIMEOUT = lazy_regex(
    rb"(?:\[rank(?P<rank>\d{1,7})\]:[^\n]{0,200}?)?"
    rb"\[(?:PG [^\]\n]{0,40}?GUID (?P<group>[^\s(\]]{1,100})[^\]\n]{0,200} |PG [^\]\n]{1,40} )?"
    rb"Rank (?P<position>\d{1,7})\] Watchdog caught collective operation timeout: "
    rb"Work\w{1,20}\(SeqNum=(?P<number>\d{1,18}), OpType=(?P<operation>\w{1,40})[^\n]{0,1000}? "
    rb"ran for (?P<ran_ms>\d{1,12}) milliseconds"
)


def read_stacks(stream: BinaryIO) -> StackDump:
    """Read a stack dump. Raises TraceError if the text has no thread with a frame."""
    content = stream.read(MAX_BYTES).decode("utf-8", "replace")
    threads: list[tuple[str, list[RecordedFrame]]] = []
    py_spy = False
    for line in content.splitlines():
        if _FAULTHANDLER_THREAD.match(line):
            threads.append(("current" if line.startswith(("Current", "Stack")) else "", []))
        elif match := _PY_SPY_THREAD.match(line):
            py_spy = True
            threads.append((match["name"] or "", []))
        elif threads and (
            match := _FAULTHANDLER_FRAME.match(line) or (py_spy and _PY_SPY_FRAME.match(line)) or None
        ):
            threads[-1][1].append(RecordedFrame(match["file"], int(match["line"] or 0), match["function"]))
    stacks = [(name, tuple(frames[:MAX_FRAMES])) for name, frames in threads if frames]
    if not stacks:
        raise TraceError("the text has no stack", hint="write it with `py-spy dump --pid <pid>` or `faulthandler`")
    # faulthandler writes the main thread last, py-spy first.
    first = next(
        (i for i, (name, _) in enumerate(stacks) if name == "MainThread"), 0 if py_spy else len(stacks) - 1
    )
    stacks.insert(0, stacks.pop(first))
    return StackDump("py-spy" if py_spy else "faulthandler", tuple(frames for _, frames in stacks))


def read_timeouts(stream: BinaryIO) -> list[WatchdogTimeout]:
    """Read the calls that watchdogs gave up, each once, from a log; none if it has no such line."""
    stream.seek(max(0, stream.seek(0, 2) - MAX_BYTES))
    found: dict[tuple[int | None, int, str | None, int, str], WatchdogTimeout] = {}
    for match in _TIMEOUT.finditer(stream.read(MAX_BYTES)):
        operation = match["operation"].decode("ascii", "replace")
        timeout = WatchdogTimeout(
            rank=None if match["rank"] is None else int(match["rank"]),
            position=int(match["position"]),
            group=None if match["group"] is None else match["group"].decode("utf-8", "replace"),
            number=int(match["number"]),
            operation=operation,
            ran_ns=int(match["ran_ms"]) * 1_000_000,
        )
        found.setdefault(timeout[:5], timeout)  # the watchdog repeats it as it ends the process
    return [*found.values()]
