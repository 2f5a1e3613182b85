"""Tokens per second, from the annotations of a serving engine.

    execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)_generation_37(sq37sk34489sqsq37sqsk34489)

vLLM and SGLang write: requests whose prompt is read and requests that generate, and of both the sum of queries
(`sq`: the tokens that go through the model).
"""

from __future__ import annotations

import re

import msgspec
import numpy as np

from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.calls.links import device_launches
from torch_tb_profiler.model.kinds import Kind, event_ends, rows_of_kind
from torch_tb_profiler.model.trace import Trace, distinct_codes

_ITERATION = re.compile(
    r"^execute_\d{1,12}_context_\d{1,9}\(sq(?P<prompt>\d{1,12})sk\d+sqsq\d+sqsk\d+\)"
    r"_generation_\d{1,9}\(sq(?P<generated>\d{1,12})sk\d+sqsq\d+sqsk\d+\)$"
)


class TokenCounts(msgspec.Struct, frozen=True):
    """Token counts over all iterations.

    iterations
    prompt     tokens of prompts that went through the model
    generating  tokens of requests that generate: one for each request and iteration, more with drafts
    duration_ns  from the begin of the first iteration to the end of the last, of its work on the device too
    event      row of the first iteration
    """

    iterations: int
    prompt: int
    generating: int
    duration_ns: int
    event: int

    @property
    def per_second(self) -> float:
        """Return the tokens per second that go through the model."""
        return 1e9 * (self.prompt + self.generating) / self.duration_ns


@derived
def count_tokens(trace: Trace) -> TokenCounts | None:
    """Return the token counts, or None without annotations that take time and whose device work is known."""
    host, device = rows_of_kind(trace, Kind.ANNOTATION), rows_of_kind(trace, Kind.DEVICE_ANNOTATION)
    token_counts = {
        code: (int(match["prompt"]), int(match["generated"]))
        for code in distinct_codes(trace.events.name[host])
        if (match := _ITERATION.match(trace.strings[code]))
    }
    names = np.array([*token_counts], np.int32)
    mine = host[np.isin(trace.events.name[host], names)]
    if len(mine) == 0:
        return None
    begin, end = int(trace.events.start[mine].min()), int(event_ends(trace)[mine].max())
    rows, launch = device_launches(trace)
    launched = rows[(launch >= 0) & (trace.events.start[launch] >= begin) & (trace.events.start[launch] <= end)]
    work = np.concatenate([launched, device[np.isin(trace.events.name[device], names)]])
    if end <= begin or (len(rows) > 0 and len(work) == 0):
        return None
    end = max(end, int(event_ends(trace)[work].max(initial=end)))
    counts = [token_counts[code] for code in trace.events.name[mine].tolist()]
    first = int(mine[np.argmin(trace.events.start[mine])])
    return TokenCounts(len(mine), sum(p for p, _ in counts), sum(g for _, g in counts), end - begin, first)
