"""Tokens per second, from the annotations of a serving engine."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.base.arrays import distinct
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.calls.links import device_launches
from torch_tb_profiler.model.kinds import Kind, event_ends, rows_of_kind
from torch_tb_profiler.model.serving.iterations import serving_iterations
from torch_tb_profiler.model.trace import ABSENT, Trace


class TokenCounts(msgspec.Struct, frozen=True):
    """Token counts over all iterations.

    iterations
    prompt     tokens of prompts that went through the model
    generating  tokens of requests that generate: one for each request and iteration, more with drafts
    drafts     whether drafts are among them, of which only some are accepted
    duration_ns  from the start of the first iteration to the end of the last, of its work on the device too
    event      row of the first iteration
    """

    iterations: int
    prompt: int
    generating: int
    drafts: bool
    duration_ns: int
    event: int

    @property
    def per_second(self) -> float:
        """Return the tokens per second that go through the model."""
        return 1e9 * (self.prompt + self.generating) / self.duration_ns


@derived
def count_tokens(trace: Trace) -> TokenCounts | None:
    """Return the token counts, or None without annotations that take time and whose device work is known."""
    found = serving_iterations(trace)
    if found is None or found.source != "annotations":
        return None
    if (found.prompt_tokens == ABSENT).any() or (found.decode_tokens == ABSENT).any():
        return None
    begin, end = int(found.host_start[0]), int(found.host_end.max())
    names = distinct(trace.events.name[found.event])
    copies = rows_of_kind(trace, Kind.DEVICE_ANNOTATION)
    copies = copies[np.isin(trace.events.name[copies], names)]
    rows, launch = device_launches(trace)
    launched = rows[(launch >= 0) & (trace.events.start[launch] >= begin) & (trace.events.start[launch] <= end)]
    work = np.concatenate([launched, copies])
    if end <= begin or (len(rows) > 0 and len(work) == 0):
        return None
    end = max(end, int(event_ends(trace)[work].max(initial=end)))
    prompt, generating = int(found.prompt_tokens.sum()), int(found.decode_tokens.sum())
    return TokenCounts(len(found), prompt, generating, bool(found.speculative), end - begin, int(found.event[0]))
