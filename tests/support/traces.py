"""Drawing small traces: a line of text per event, read through the real reader.

    draw('''
    host  user_annotation  ProfilerStep#1   0  100
    host  cpu_op           aten::mm        10   40   External id=1
    host  cuda_runtime     cudaLaunch      20   10   correlation=7
    gpu0  kernel           gemm            40   50   correlation=7 device=0 stream=7
    ''')

Columns: thread, category, name, start and duration in us, arguments. `host` is pid 1 tid 1, `host2` tid 2,
`gpuN` pid N with the stream as tid.
"""

from __future__ import annotations

import io
import json
import re
from typing import Any

from torch_tb_profiler.ingest import read_trace
from torch_tb_profiler.model.trace import Trace

BUSY_HOST = """
host  user_annotation  ProfilerStep#1           0  600
host  cpu_op           aten::mm                 0   20
host  cuda_runtime     cudaLaunchKernel         5   10  correlation=1
gpu0  kernel           gemm                    19  200  correlation=1
host  cpu_op           aten::mm                21   20
host  cuda_runtime     cudaLaunchKernel        25   10  correlation=2
gpu0  kernel           gemm                   220  280  correlation=2
host  cpu_op           aten::mul               44    5
host  cpu_op           aten::item              50  455
host  cuda_runtime     cudaStreamSynchronize   52  450
host  cpu_op           aten::mul              540   50
"""
"""The host launches a kernel, its neighbor follows, the host runs ahead and waits for both until 502 us, then
bounds the step again: of aten::mul the second call alone is on the path."""

_ARG = re.compile(r"([A-Za-z][A-Za-z0-9_ .%]*?)=(\S+)")


def event(line: str) -> dict[str, Any]:
    """Return the trace event that a line draws."""
    thread, category, name, start, duration, *rest = line.split(None, 5)
    args = {key.strip(): _value(text) for key, text in _ARG.findall(rest[0])} if rest else {}
    if thread.startswith("gpu"):
        pid: int = int(thread[3:] or 0)
        tid = args.get("stream", 7)
        args.setdefault("device", pid)
    else:
        pid, tid = 1, int(thread[4:] or 1)
    return {
        "ph": "X",
        "cat": category,
        "name": name.replace("~", " "),
        "pid": pid,
        "tid": tid,
        "ts": float(start),
        "dur": float(duration),
        "args": args,
    }


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def draw(picture: str, *more: dict[str, Any], **metadata: Any) -> Trace:
    """Return a Trace of the drawn events and of further ones given as objects."""
    events = [event(line) for line in picture.strip().splitlines() if line.strip()]
    return read([*events, *more], **metadata)


def read(events: list[Any], **metadata: Any) -> Trace:
    """Return a Trace of event objects."""
    return read_bytes(document(events, **metadata))


def document(events: list[Any], **metadata: Any) -> bytes:
    """Return the bytes of a trace file."""
    return json.dumps({"schemaVersion": 1, **metadata, "traceEvents": events}).encode()


def read_bytes(content: bytes) -> Trace:
    """Return a Trace of the bytes of a file."""
    return read_trace(io.BytesIO(content), size=len(content))
