"""What to do about it: findings that are worth a person's time, the largest gain first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from torch_tb_profiler.analyses.overview.device_rules import (
    communication,
    data_parallel,
    layout_conversion,
    mixed_precision,
    nccl_backend,
)
from torch_tb_profiler.analyses.overview.finding import LEAST_GAIN, Advice, Finding, Gain
from torch_tb_profiler.analyses.overview.gains import gains, measured
from torch_tb_profiler.analyses.overview.host_rules import host_rules, pageable_copies
from torch_tb_profiler.analyses.overview.job import no_advice
from torch_tb_profiler.analyses.overview.kernel_rules.attention import unfused_attention
from torch_tb_profiler.analyses.overview.kernel_rules.chains import elementwise_chains
from torch_tb_profiler.analyses.overview.kernel_rules.optimizer import optimizer_loop
from torch_tb_profiler.analyses.overview.kernel_rules.products import slow_products
from torch_tb_profiler.analyses.overview.memory_rules import memory_limit
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.kinds import DEVICE_KINDS, rows_of_kind
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Trace

_RULES = (
    host_rules,
    pageable_copies,
    communication,
    data_parallel,
    nccl_backend,
    mixed_precision,
    layout_conversion,
)
"""What the events themselves tell."""

_KERNEL_RULES = (slow_products, unfused_attention, elementwise_chains, optimizer_loop)
"""What the work of the operators tells: on devices."""


@derived
def advice(trace: Trace) -> tuple[Advice, ...]:
    """Of all rules that apply, by what following it gains; empty where `no_advice` says why."""
    rules = (*_RULES, *_KERNEL_RULES) if len(rows_of_kind(trace, *DEVICE_KINDS)) else _RULES
    return _worthwhile(trace, rules, gains)


def measured_advice(trace: Trace) -> tuple[Advice, ...]:
    """What the events themselves tell, by what it would take away: no schedule is replayed, no work modeled."""
    return _worthwhile(trace, _RULES, measured)


def _worthwhile(
    trace: Trace,
    rules: Sequence[Callable[[Trace], Iterator[Finding]]],
    weigh: Callable[[Trace, Sequence[Finding]], list[Gain]],
) -> tuple[Advice, ...]:
    if no_advice(trace) is not None:
        return ()
    spans = steps(trace)
    step = float((spans.ends - spans.starts)[spans.complete].sum()) / int(spans.complete.sum())
    findings = [finding for rule in rules for finding in rule(trace)] if step > 0 else []
    weighed = [
        Advice(finding, gain, gain.ns / step)
        for finding, gain in zip(findings, weigh(trace, findings), strict=True)
        if gain.measured_ns > 0 and gain.ns >= LEAST_GAIN * step
    ]
    weighed.sort(key=lambda each: -(each.gain_share or 0))
    return (*weighed, *(Advice(finding, None, None) for finding in memory_limit(trace)))
