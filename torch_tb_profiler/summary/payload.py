"""What a summary says. Times in ns, sizes in bytes, shares 0..1; null is unknown, and `reasons` says why."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from torch_tb_profiler.base import html
from torch_tb_profiler.base.format import format_duration

VERSION = 1
"""Raised when a field goes or changes its meaning; a new field does not raise it."""


class StepTime(msgspec.Struct, frozen=True):
    """The average step: the mean over the workers of the mean of each over its complete steps.

    workers    how many have complete steps; steps: how many of them at most
    slowest    the worker whose mean is the longest, and that
    breakdown  the eight parts of the overview, mean over the workers that know them; they add up to `mean_ns`
               where every worker knows all
    recorded   false where a worker's file has no steps: the whole of it counts as one
    """

    mean_ns: float
    workers: int
    steps: int
    slowest: str
    slowest_ns: float
    breakdown: Mapping[str, float | None]
    recorded: bool

    @property
    def whole(self) -> str:
        """What takes this time, in words."""
        return "a step" if self.recorded else "the trace"


class Top(msgspec.Struct, frozen=True):
    """An operator, kernel or class of modules: sums over the workers that were read, whole recording.

    name       shortened in the middle if it is long
    time_ns    its own time: of the device, in a run without device work of the host
    share      of that time of all
    """

    name: str
    calls: int
    time_ns: int
    share: float | None


class DeviceUse(msgspec.Struct, frozen=True):
    """The accelerators of all workers; utilization: share of the time in steps with a kernel."""

    devices: int
    name: str | None
    mean_utilization: float | None
    least_utilization: float | None
    least_worker: str | None


class Communication(msgspec.Struct, frozen=True):
    """Communication that no computation hides, mean per step over the workers.

    late_worker, late_rank  who keeps the others waiting most, and what that costs per step; null if nobody stands
                            out or that is unknown, which `text` says
    """

    exposed_ns: float
    exposed_share: float
    late_worker: str | None
    late_rank: int | None
    late_cost_ns: float | None
    text: str


class Memory(msgspec.Struct, frozen=True):
    """The highest peak of allocated memory on an accelerator (of the host without one); `growth`: what grows."""

    worker: str
    device: str
    peak_bytes: int
    capacity_bytes: int | None
    growth: list[str]


class Advice(msgspec.Struct, frozen=True):
    """A recommendation of the overview, for the worker for which it gains most; gains do not add up."""

    title: str
    text: str
    gain: str
    gain_ns: float | None
    gain_share: float | None
    worker: str


class Health(msgspec.Struct, frozen=True):
    """What is wrong with the files: kinds of findings by severity, over all workers, and who cannot be read."""

    errors: int
    warnings: int
    unreadable: int
    notes: list[str]


class Summary(msgspec.Struct, frozen=True):
    """A run at one span.

    workers, read  how many there are, and how many could be read
    headline       who or what to look at first
    bound          what bounds the step of `bound_worker`: of the one that is late, else of the slowest
    advice         largest gain first
    reasons        section -> why it is null or empty
    """

    version: int
    run: str
    span: str
    workers: int
    read: int
    headline: list[str]
    bound: str
    bound_worker: str
    step: StepTime | None
    operators: list[Top]
    kernels: list[Top]
    modules: list[Top]
    devices: DeviceUse | None
    communication: Communication | None
    memory: Memory | None
    advice: list[Advice]
    health: Health
    reasons: Mapping[str, str]

    def _repr_html_(self) -> str:
        """In a notebook: the same with bars behind times."""
        step, work = self.step, msgspec.to_builtins([self.operators, self.kernels, self.modules])
        parts = [{"part": part, "mean_ns": time} for part, time in step.breakdown.items()] if step else []
        advice = [{"gain": each.gain, "advice": each.title, "worker": each.worker} for each in self.advice]
        tables = dict(zip(("operators", "kernels", "modules"), work, strict=True))
        return html.render_block(
            f"Run {self.run}",
            [*self.headline, self.bound, *self.health.notes],
            html.render_table(f"{step.whole} of {format_duration(step.mean_ns)}" if step else "", parts),
            *(html.render_table(name, rows) for name, rows in tables.items()),
            html.render_table("advice, largest gain first", advice),
        )
