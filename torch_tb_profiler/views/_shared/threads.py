"""How threads are named in payloads and parameters."""

from __future__ import annotations

from torch_tb_profiler.model.trace import Trace


def thread_name(trace: Trace, code: int) -> str:
    """A thread as the `thread` parameter of each view takes it: `pid/tid`."""
    thread = trace.threads[code]
    return f"{thread.pid}/{thread.tid}"
