"""Payloads and sentences about where kernels come from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from torch_tb_profiler.analyses.origins import OriginCoverage, coverage, line_share
from torch_tb_profiler.analyses.shared.origin_times import OriginTime
from torch_tb_profiler.base.format import format_ratio
from torch_tb_profiler.model.health import HealthNote
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.views._shared.text import Text, plain, text


class OriginTimeRow(msgspec.Struct, frozen=True):
    """Kernels of one origin: their number and total time; `event` is the longest.

    module  path, outermost first, joined by "/"
    lines   `file:line`; of a compiled kernel one for each statement that it computes
    how     launch, graph node, capture, compile record; null if nothing is known
    reason  why something is null
    """

    operator: str | None
    module: str | None
    lines: list[str]
    how: str | None
    reason: str | None
    kernels: int
    ns: int
    event: int


class OriginTimesPayload(msgspec.Struct, frozen=True):
    """Where the kernels of a row come from, and the compiled kernels in it, most time first.

    reason  why there is none
    """

    name: str
    rows: list[OriginTimeRow]
    reason: Text | None


def origin_rows(times: Iterable[OriginTime]) -> list[OriginTimeRow]:
    """Return a row of a payload for each origin."""
    return [
        OriginTimeRow(
            each.operator, each.module, list(each.lines), each.how, each.reason, each.kernels, each.ns, each.event
        )
        for each in times
    ]


def coverage_headline(covered: OriginCoverage) -> Text:
    """Say how much of the kernel time is traced to a line, or at least to an operator or a module."""
    kernels = "kernel time" if covered.is_device else "compiled kernel time on the CPU"
    if covered.known_ns["line"]:
        share = format_ratio(line_share(covered))
        return text("{share} of {kernels} is traced to a source line.", share=share, kernels=kernels)
    if covered.known_ns["operator"]:
        share = format_ratio(covered.known_ns["operator"] / covered.kernel_ns)
        return text(
            "{share} of {kernels} is traced to an operator, none to a source line.", share=share, kernels=kernels
        )
    if covered.known_ns["module"]:
        share = format_ratio(covered.known_ns["module"] / covered.kernel_ns)
        return text(
            "{share} of {kernels} is traced to a module, none to an operator or a source line.",
            share=share,
            kernels=kernels,
        )
    return text("The origin of {kernels} is unknown.", kernels=kernels)


def origin_notes(trace: Trace) -> Iterator[HealthNote]:
    """Yield a note on the coverage of origins, for a trace in which graphs or compiled code hide them."""
    covered = coverage(trace)
    if not covered.kernel_ns:
        return
    message = plain(coverage_headline(covered)).removesuffix(".")
    if covered.untraced:
        first = covered.untraced[0]
        message += f"; {format_ratio(first.ns / covered.kernel_ns)}: {first.reason}"
    yield HealthNote("origins", "info", message, covered.kernels)
