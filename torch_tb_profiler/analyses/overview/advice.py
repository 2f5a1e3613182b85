"""What to do about it: findings that are worth a person's time, the largest gain first."""

from __future__ import annotations

from collections.abc import Iterator

from torch_tb_profiler.analyses.overview.device_rules import (
    communication,
    data_parallel,
    layout_conversion,
    mixed_precision,
    nccl_backend,
)
from torch_tb_profiler.analyses.overview.finding import LEAST_GAIN, Advice, Finding
from torch_tb_profiler.analyses.overview.gains import gains
from torch_tb_profiler.analyses.overview.host_rules import host_rules, pageable_copies
from torch_tb_profiler.analyses.overview.job import no_advice
from torch_tb_profiler.analyses.overview.kernel_rules.attention import unfused_attention
from torch_tb_profiler.analyses.overview.kernel_rules.chains import elementwise_chains
from torch_tb_profiler.analyses.overview.kernel_rules.optimizer import optimizer_loop
from torch_tb_profiler.analyses.overview.kernel_rules.products import slow_products
from torch_tb_profiler.analyses.overview.memory_rules import memory_limit
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Trace, derived

_RULES = (
    host_rules,
    pageable_copies,
    communication,
    data_parallel,
    nccl_backend,
    mixed_precision,
    layout_conversion,
    slow_products,
    unfused_attention,
    elementwise_chains,
    optimizer_loop,
)


@derived
def advice(trace: Trace) -> tuple[Advice, ...]:
    """Of all rules that apply; empty where `no_advice` says why."""
    if no_advice(trace) is not None:
        return ()
    spans = steps(trace)
    kept = spans.complete
    step = float((spans.ends - spans.starts)[kept].sum()) / int(kept.sum())
    findings = list(_findings(trace)) if step > 0 else []
    weighed = [
        Advice(finding, gain, gain.ns / step)
        for finding, gain in zip(findings, gains(trace, findings), strict=True)
        if gain.measured_ns > 0 and gain.ns >= LEAST_GAIN * step
    ]
    weighed.sort(key=lambda each: -(each.gain_share or 0))
    return (*weighed, *(Advice(finding, None, None) for finding in memory_limit(trace)))


def _findings(trace: Trace) -> Iterator[Finding]:
    for rule in _RULES:
        yield from rule(trace)
