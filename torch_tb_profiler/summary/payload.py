"""The fields of a summary. Times in ns, sizes in bytes, shares 0..1; null is unknown, and `reasons` says why."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from torch_tb_profiler.base import html
from torch_tb_profiler.base.format import format_duration
from torch_tb_profiler.base.grammar import with_article

VERSION = 1
"""Version of the format; it increases when a field is removed or changes its meaning, not for a new field."""


class StepTime(msgspec.Struct, frozen=True):
    """The average step: the mean over the workers of the mean of each over its typical steps.

    workers    how many workers are averaged
    left_out   the stragglers, which spend their steps otherwise than the workers that wait for them, and so aren't
               averaged with them; `headline` says what they do
    steps      the most complete steps of one worker
    slowest    the worker with the longest mean step; `slowest_ns` is that mean
    breakdown  the eight parts of the overview, mean over the workers that know them; they add up to `mean_ns`
               where every worker knows all
    recorded   false if a worker's file has no steps; the whole trace then counts as one
    noun       what a step is in a sentence: "step", or "iteration" of an inference engine
    typical    whether a worker has odd steps, which the means leave out
    """

    mean_ns: float
    workers: int
    steps: int
    slowest: str
    slowest_ns: float
    breakdown: Mapping[str, float | None]
    recorded: bool
    left_out: list[str] = []
    noun: str = "step"
    typical: bool = False

    @property
    def share_base(self) -> str:
        """Return what takes this time: "a step", "a typical step", "an iteration" or "the trace"."""
        if not self.recorded:
            return "the trace"
        return f"a typical {self.noun}" if self.typical else with_article(self.noun)


class Top(msgspec.Struct, frozen=True):
    """An operator, kernel or class of modules, summed over the workers that were read and the whole recording.

    name       shortened in the middle if it is long
    calls      null for operators and modules that only replays of a graph ran
    time_ns    self time on the device; on the host if the run has no device work
    share      share of the total of `time_ns` over all rows
    """

    name: str
    calls: int | None
    time_ns: int
    share: float | None


class DeviceUse(msgspec.Struct, frozen=True):
    """The accelerators of all workers. Utilization is the share of the typical steps with a running kernel.

    devices   how many there are; if workers may share one, how many there are at most, and `at_least` is lower
    """

    devices: int
    at_least: int
    name: str | None
    mean_utilization: float | None
    least_utilization: float | None
    least_worker: str | None


class Communication(msgspec.Struct, frozen=True):
    """Exposed communication (not overlapped with compute), mean per step over the workers that aren't stragglers.

    exposed  False without a device: then all communication counts, as the host computes on while other threads
             communicate

    late_worker, late_rank  the straggler; `late_cost_ns` is what it costs per step. Null if there is none or it
                            can't be determined, which `text` says
    """

    exposed_ns: float
    exposed_share: float
    late_worker: str | None
    late_rank: int | None
    late_cost_ns: float | None
    text: str
    exposed: bool = True


class Memory(msgspec.Struct, frozen=True):
    """The highest peak of allocated memory on an accelerator (on the host if there is none).

    growth     sentences on what grows from step to step
    requested  the peak counts what tensors requested, as snapshots record it: the allocator rounds that up
    """

    worker: str
    device: str
    peak_bytes: int
    capacity_bytes: int | None
    growth: list[str]
    requested: bool = False


class SummaryAdvice(msgspec.Struct, frozen=True):
    """A recommendation of the overview, for the worker that gains most; savings overlap, so they don't add up."""

    title: str
    text: str
    gain: str
    gain_ns: float | None
    gain_share: float | None
    worker: str


class Health(msgspec.Struct, frozen=True):
    """Problems with the files of all workers: kinds of findings by severity, and how many files can't be read."""

    errors: int
    warnings: int
    unreadable: int
    notes: list[str]


class Summary(msgspec.Struct, frozen=True):
    """The summary of a run at one span.

    workers, read  number of workers, and how many could be read
    ranks     number of ranks of the job as far as its files tell; null if there is no communication
    headline       who or what to look at first
    bound          what limits the step of `bound_worker`: the straggler, or else the slowest worker
    advice         largest gain first
    reasons        section -> why it is null or empty
    replayed       operators at the capture of the graphs, by the time of the kernels that were replayed of them
    """

    version: int
    run: str
    span: str
    workers: int
    read: int
    ranks: int | None
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
    advice: list[SummaryAdvice]
    health: Health
    reasons: Mapping[str, str]
    replayed: list[Top] = []

    def _repr_html_(self) -> str:
        """Return the summary with bars behind the times, for a notebook."""
        step, work = self.step, msgspec.to_builtins([self.operators, self.replayed, self.kernels, self.modules])
        parts = [{"part": part, "mean_ns": time} for part, time in step.breakdown.items()] if step else []
        advice = [{"gain": each.gain, "advice": each.title, "worker": each.worker} for each in self.advice]
        tables = dict(zip(("operators", "replayed", "kernels", "modules"), work, strict=True))
        return html.render_block(
            f"Run {self.run}",
            [*self.headline, self.bound, *self.health.notes],
            html.render_table(f"{step.share_base} of {format_duration(step.mean_ns)}" if step else "", parts),
            *(html.render_table(name, rows) for name, rows in tables.items()),
            html.render_table("advice, largest gain first", advice),
        )
