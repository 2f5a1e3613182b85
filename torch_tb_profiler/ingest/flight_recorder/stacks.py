"""Stacks of a process as text: `py-spy dump --pid N`, and `faulthandler.dump_traceback`.

Process 48213: python train.py                       Thread 0x00007f31c2ffd740 (most recent call first):
Thread 48213 (idle): "MainThread"                      File "/job/train.py", line 88 in load_batch
    load_batch (train.py:88)                           File "/job/train.py", line 231 in <module>
    <module> (train.py:231)
"""

from __future__ import annotations

from typing import BinaryIO

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.model.flight_recorder import RecordedFrame, StackDump

MAX_BYTES = 16 * 2**20
"""Largest file of stacks that is read; those of a process with hundreds of threads take less than 1 MB."""

MAX_FRAMES = 256
"""Frames of a stack that are kept, the innermost ones; recursion may be thousands deep."""

_PY_SPY_THREAD = lazy_regex(r'^Thread (?:0x[0-9A-Fa-f]+|\d+) \([^)]*\)(?:: "(?P<name>.*)")?')
_PY_SPY_FRAME = lazy_regex(r"^\s+(?P<function>.+?) \((?P<file>.+?)(?::(?P<line>\d{1,9}))?\)$")
_FAULTHANDLER_THREAD = lazy_regex(r"^(?:Current thread|Thread|Stack) .*\(most recent call first\):$")
_FAULTHANDLER_FRAME = lazy_regex(r'^\s+File "(?P<file>.*)", line (?P<line>\d{1,9}) in (?P<function>.*)$')


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
