"""The source that torch.compile generated for a kernel."""

from __future__ import annotations

import re

import numpy as np

from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.origins.compiled import calls_around, compiled_calls
from torch_tb_profiler.model.trace import NO_CODE, Trace

MAX_SOURCE_LENGTH = 20_000
"""Most characters of a kernel's source that are shown."""

_END = re.compile(r"^''', .*$|^'''\)$", re.MULTILINE)


def generated_source(trace: Trace, row: int) -> str | None:
    """Return the generated source of the kernel that an event runs or calls, None if no record has it."""
    calls = compiled_calls(trace)
    if len(calls.rows) == 0:
        return None
    links = device_links(trace)
    place = int(np.searchsorted(links.rows, row))
    is_device = place < len(links.rows) and int(links.rows[place]) == row
    operator = int(links.operator[place]) if is_device else row
    index = int(calls_around(trace, np.array([operator], np.int32), calls)[0]) if operator >= 0 else NO_CODE
    if index < 0:
        return None
    kernel, graph = calls.kernels[index], calls.graphs[index]
    if kernel is None or graph is None:
        return None
    begin = re.search(rf"^{re.escape(kernel.name)} = async_compile\.", graph.source, re.MULTILINE)
    if begin is None:
        return None
    end = _END.search(graph.source, begin.end())
    return graph.source[begin.start() : end.end() if end else None][:MAX_SOURCE_LENGTH]
