"""Coverage: the share of kernel time whose operator, module, and source line are known."""

from __future__ import annotations

from collections import defaultdict

import msgspec
import numpy as np

from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.kinds import Kind, event_ends, event_kinds
from torch_tb_profiler.model.origins.origins import HOW, origins
from torch_tb_profiler.model.origins.replayed_kernels import replayed_kernels
from torch_tb_profiler.model.origins.replays import graph_replays
from torch_tb_profiler.model.trace import NO_CODE, Bool, Trace, distinct_codes


class UnknownOrigins(msgspec.Struct, frozen=True):
    """Kernels of which something is unknown for one reason: how many, and their total time in ns."""

    reason: str
    kernels: int
    ns: int


class CaptureUse(msgspec.Struct, frozen=True):
    """Captures with the same source and batch size: their launches, and the replays that they explain."""

    source: str
    size: int | None
    captures: int
    launches: int
    replays: int


class Coverage(msgspec.Struct, frozen=True):
    """Known origins of the kernels of a trace; in a trace without device, of the compiled kernels on the host.

    kernels    their number
    kernel_ns  their total time
    known_ns   the part whose "operator", "module" or "line" is known
    how_ns     the part that each source explains first
    lost       for each reason, most time first
    untraced   the same for the kernels without a line: something else may be unknown of the others
    captures   that were found, in the order in which they were read
    replays    graph launches with kernels
    is_device  whether the kernels ran on a device
    """

    kernels: int
    kernel_ns: int
    known_ns: dict[str, int]
    how_ns: dict[str, int]
    lost: list[UnknownOrigins]
    untraced: list[UnknownOrigins]
    captures: list[CaptureUse]
    replays: int
    is_device: bool


@derived
def coverage(trace: Trace) -> Coverage:
    """Return how much of the kernel time of a trace has a known origin."""
    found = origins(trace)
    kernels = found.is_device & (event_kinds(trace)[found.rows] == Kind.KERNEL)
    is_device = bool(found.is_device.any())
    wanted = np.flatnonzero(kernels if is_device else ~found.is_device)
    duration = (event_ends(trace) - trace.events.start)[found.rows[wanted]]

    def time_of(mask: Bool) -> int:
        return int(duration[mask].sum())

    def by_reason(among: Bool) -> list[UnknownOrigins]:
        reasons = np.where(among, found.reason[wanted], NO_CODE)
        lost = []
        for code in distinct_codes(reasons):
            mask = reasons == code
            lost.append(UnknownOrigins(found.tables["reason"][code], int(mask.sum()), time_of(mask)))
        return sorted(lost, key=lambda each: (-each.ns, each.reason))

    how = found.how[wanted]
    return Coverage(
        kernels=len(wanted),
        kernel_ns=int(duration.sum()),
        known_ns={
            "operator": time_of(found.operator[wanted] >= 0),
            "module": time_of(found.modules[wanted] >= 0),
            "line": time_of(found.lines[wanted] >= 0),
        },
        how_ns={name: time_of(how == code) for code, name in enumerate(HOW) if (how == code).any()},
        lost=by_reason(np.ones(len(wanted), np.bool_)),
        untraced=by_reason(found.lines[wanted] < 0),
        captures=_capture_uses(trace),
        replays=len(graph_replays(trace)),
        is_device=is_device,
    )


def _capture_uses(trace: Trace) -> list[CaptureUse]:
    """Return the captures of a trace, by source and batch size."""
    if not len(graph_replays(trace)):
        return []
    resolved = replayed_kernels(trace)
    uses: dict[tuple[str, int | None], list[int]] = defaultdict(lambda: [0, 0, 0])
    for capture, replays in zip(resolved.captures.captures, resolved.matched, strict=True):
        use = uses[capture.source, capture.size]
        use[0] += 1
        use[1] += len(capture.kernels)
        use[2] = max(use[2], replays)
    return [CaptureUse(source, size, *counts) for (source, size), counts in uses.items()]


def line_share(covered: Coverage) -> float:
    """Return the share of kernel time that is traced to a line, 0..1; 0 without kernels."""
    return covered.known_ns["line"] / covered.kernel_ns if covered.kernel_ns else 0.0
