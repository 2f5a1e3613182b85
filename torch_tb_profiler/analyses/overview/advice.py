"""Advice: the findings of all rules that are worth a person's time, largest gain first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from msgspec.structs import replace

from torch_tb_profiler.analyses.overview.communication_rules import (
    find_contention,
    find_pipeline_waits,
    find_small_collectives,
)
from torch_tb_profiler.analyses.overview.device_rules import (
    find_communication,
    find_data_parallel,
    find_missing_nccl,
)
from torch_tb_profiler.analyses.overview.finding import (
    ADVICE_ON_WAITS,
    MIN_GAIN_SHARE,
    Advice,
    Finding,
    Gain,
    advice_priority,
    no_advice_reason,
)
from torch_tb_profiler.analyses.overview.gains import estimate_gains, later_steps_ns, measure_gains
from torch_tb_profiler.analyses.overview.host_calls import copying_calls
from torch_tb_profiler.analyses.overview.host_rules import (
    find_exposed_copies,
    find_host_causes,
    find_loading_stalls,
    find_pageable_copies,
    find_pinned_copies,
)
from torch_tb_profiler.analyses.overview.kernel_rules.attention import find_unfused_attention
from torch_tb_profiler.analyses.overview.kernel_rules.chains import find_elementwise_chains
from torch_tb_profiler.analyses.overview.kernel_rules.layouts import find_layout_conversions
from torch_tb_profiler.analyses.overview.kernel_rules.matrix_products import (
    find_missing_mixed_precision,
    find_slow_products,
)
from torch_tb_profiler.analyses.overview.kernel_rules.optimizer import find_optimizer_loop, find_optimizer_on_cpu
from torch_tb_profiler.analyses.overview.memory_rules import find_memory_problems
from torch_tb_profiler.analyses.shared.typical_steps import step_kinds
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.calls.calltree import enclosing_operators
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.kernels.short_names import display_name
from torch_tb_profiler.model.kinds import DEVICE_KINDS, rows_of_kind
from torch_tb_profiler.model.origins.compiled import has_indirect_kernels
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Trace

_RULES = (
    find_host_causes,
    find_loading_stalls,
    find_pageable_copies,
    find_exposed_copies,
    find_pinned_copies,
    find_optimizer_on_cpu,
    find_communication,
    find_pipeline_waits,
    find_small_collectives,
    find_contention,
    find_data_parallel,
    find_missing_nccl,
    find_layout_conversions,
)
"""Rules that read events alone."""

_KERNEL_RULES = (
    find_missing_mixed_precision,
    find_slow_products,
    find_unfused_attention,
    find_elementwise_chains,
    find_optimizer_loop,
)
"""Rules that need FLOPs and peaks; on devices only."""


@derived
def advice(trace: Trace) -> tuple[Advice, ...]:
    """Return the advice of all rules that apply, largest gain first; empty where `no_advice_reason` says why."""
    if no_advice_reason(trace) is not None:
        return ()
    has_device_work = len(rows_of_kind(trace, *DEVICE_KINDS)) > 0
    findings = [*_measured_findings(trace), *_find_all(trace, _KERNEL_RULES if has_device_work else ())]
    least = MIN_GAIN_SHARE * _typical_step_ns(trace)
    return _select_worthwhile_advice(
        trace, findings, estimate_gains(trace, findings, _measured_gains(trace), least)
    )


def measured_advice(trace: Trace) -> tuple[Advice, ...]:
    """Return the advice of rules that read events alone, by measured time: nothing is replayed."""
    if no_advice_reason(trace) is not None:
        return ()
    return _select_worthwhile_advice(trace, _measured_findings(trace), _measured_gains(trace))


@derived
def _measured_findings(trace: Trace) -> tuple[Finding, ...]:
    """Return what the rules find that read events alone; the first page and the whole Overview need them."""
    return tuple(_find_all(trace, _RULES))


@derived
def _measured_gains(trace: Trace) -> tuple[Gain, ...]:
    """Return the measured gains of `_measured_findings`."""
    return tuple(measure_gains(trace, _measured_findings(trace)))


def _find_all(trace: Trace, rules: Sequence[Callable[[Trace], Iterator[Finding]]]) -> list[Finding]:
    """Return what these rules find; nothing where steps have no length."""
    if _typical_step_ns(trace) <= 0:
        return []
    return [finding for rule in rules for finding in rule(trace)]


def _typical_step_ns(trace: Trace) -> float:
    spans, typical = steps(trace), step_kinds(trace).typical
    return float((spans.ends - spans.starts)[typical].mean())


def _select_worthwhile_advice(
    trace: Trace, findings: Sequence[Finding], gains: Sequence[Gain]
) -> tuple[Advice, ...]:
    """Return the findings whose gain is worth a person's time, largest first, and then the memory limit."""
    typical, mean = _typical_step_ns(trace), later_steps_ns(trace)
    step_times = [mean if finding.of_all_steps else typical for finding in findings]
    worthwhile = [
        Advice(_describe_example(trace, finding), gain, gain.ns / step)
        for finding, gain, step in zip(findings, gains, step_times, strict=True)
        if _is_worthwhile(finding, gain, step)
    ]
    worthwhile = _drop_repeated_copies(trace, worthwhile)
    worthwhile.sort(key=lambda each: -advice_priority(each.finding.id, each.gain_share))
    return (*worthwhile, *(Advice(finding, None, None) for finding in find_memory_problems(trace)))


def _describe_example(trace: Trace, finding: Finding) -> Finding:
    """Return a finding with its kernel's short name and origin, which take long to find and few findings need.

    Only a replayed or compiled kernel has an origin: its launch says nothing.
    """
    event = finding.event
    if event is None:
        return finding
    if finding.subject:
        finding = replace(finding, subject=display_name(trace, event, finding.subject))
    if not finding.on_device or not has_indirect_kernels(trace):
        return finding
    from torch_tb_profiler.analyses.shared.origin_times import indirect_origin  # few traces get here

    return replace(finding, origin=indirect_origin(trace, event))


def _is_worthwhile(finding: Finding, gain: Gain, step: float) -> bool:
    """Return whether a gain is worth a person's time.

    What one kernel for all parameters saves counts all that the optimizer does, even what is known to be no cost.
    What waits save that nothing replays counts all idle time after any of them.
    """
    counts_more = finding.id == "optimizer_loop" or (finding.id in ADVICE_ON_WAITS and gain.basis == "share")
    known = gain.measured_ns if counts_more else gain.ns
    return gain.measured_ns > 0 and min(gain.ns, known) >= MIN_GAIN_SHARE * step


def _drop_repeated_copies(trace: Trace, found: list[Advice]) -> list[Advice]:
    """Leave out waits for copies that all come from pageable memory: to pin it removes them, too."""
    pageable = next((each.finding.rows for each in found if each.finding.id == "pageable_copies"), None)
    if pageable is None:
        return found
    links, waits = device_links(trace), copying_calls(trace).calls
    copies = np.isin(links.rows, pageable)
    operators = enclosing_operators(trace)[waits]
    pinned_away = np.isin(waits, links.launch[copies])
    pinned_away |= (operators >= 0) & np.isin(operators, links.operator[copies])
    if not pinned_away.all():
        return found
    return [each for each in found if each.finding.id != "blocking_copies"]
