"""The payload of the Overview."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from torch_tb_profiler.analyses.overview.finding import Basis
from torch_tb_profiler.model.health import HealthNote
from torch_tb_profiler.views._shared.call_payloads import TensorCoreTime
from torch_tb_profiler.views._shared.job.exposed import CommunicationParts
from torch_tb_profiler.views._shared.text import Text


class Categories(msgspec.Struct, frozen=True):
    """Time per category, ns; the eight sum to the step. None: missing, see `reasons`."""

    kernel: float | None
    memcpy: float | None
    memset: float | None
    communication: float | None
    runtime: float | None
    dataloader: float | None
    cpu_exec: float | None
    other: float | None


class Step(msgspec.Struct, frozen=True):
    """One step. `complete` is False where its device work is missing; such steps aren't averaged."""

    name: str
    start_ns: int
    duration_ns: int
    complete: bool
    categories: Categories


class Average(msgspec.Struct, frozen=True):
    """Mean over the typical steps, ns (not rounded).

    steps       number of typical steps
    outliers    names of the odd steps: complete, but far longer or shorter than all others
    typical_ns  the same as `duration_ns`
    filling     the first step, if it is longer by the time that the device runs behind the host from then on; it
                isn't averaged either
    """

    duration_ns: float
    categories: Categories
    steps: int
    outliers: list[str]
    typical_ns: float
    filling: str | None = None


class Device(msgspec.Struct, frozen=True):
    """One accelerator with work in this trace. Ratios are 0..1; None is explained in `reasons`.

    computing          the part of the utilization in which a kernel runs that does not communicate
    tensor_core_ratio  of the kernel time of the entire trace, at least; `tensor_cores` has how much is unknown
    """

    id: int
    kind: str
    name: str | None
    memory_bytes: int | None
    compute_capability: str | None
    multiprocessors: int | None
    streams: int
    utilization: float | None
    computing: float | None
    sm_efficiency: float | None
    achieved_occupancy: float | None
    tensor_core_ratio: float | None
    tensor_cores: TensorCoreTime
    reasons: Mapping[str, Text]


class HardwareUse(msgspec.Struct, frozen=True):
    """How much of their peak the devices use during the steps, as `roofline` defines it; ratios are 0..1.

    mfu, hfu  FLOPs that the model needs, and those that ran, over the peak; None is explained in `reasons`
    coverage  share of the device time whose work is known; `complete`: all, else mfu and hfu are lower bounds
    peaks     names of the devices in the catalog, None if unknown; sources: the documents that give their peaks
    """

    mfu: float | None
    hfu: float | None
    coverage: float
    complete: bool
    peaks: str | None
    sources: list[str]
    reasons: Mapping[str, Text]


class RecorderConfiguration(msgspec.Struct, frozen=True):
    """What the recorder of a device was asked for, by a file beside the trace.

    asked           what -> setting, in words
    left_out        what that leaves out and what turns it on, as sentences
    contradictions  where the trace shows that another configuration was in use
    """

    file: str
    asked: Mapping[str, str]
    left_out: list[str]
    contradictions: list[str]


class Configuration(msgspec.Struct, frozen=True):
    """What was recorded, and how. `recorded` leaves out what a truncated file lacks: it may have been cut off.

    device_type   CPU where no device worked; None where the file doesn't show which kind did, or whether any
    """

    workers: int
    device_type: str | None
    rank: int | None
    world_size: int | None
    backend: str | None
    recorded: Mapping[str, bool]
    recorder: RecorderConfiguration | None = None


class Recommendation(msgspec.Struct, frozen=True):
    """What to do.

    case        which case of the rule applies
    gain        what following it saves, in words
    gain_ns     the same per step, and gain_share of the step: at most where `gain_is_limit`, else at least; None
                where it saves no time
    basis       what_if: the recorded schedule replayed without what the advice takes away; share: what that takes
                of the step today, while nothing else runs; ranks: what the files of all ranks say together; None
                where it saves no time
    rule        when it is shown
    code        what to write, "" where there is nothing to copy
    exception   when it doesn't apply
    evidence    the link that shows it
    """

    id: str
    case: str
    title: Text
    text: Text
    gain: str
    gain_ns: float | None
    gain_share: float | None
    gain_is_limit: bool
    basis: Basis | None
    rule: str
    code: str
    exception: str
    evidence: str


class Overview(msgspec.Struct, frozen=True):
    """How the time of a step is spent.

    preview      what takes long is still to come: the critical path, what to do first, `gains`, and `hardware`
                 where `reasons` doesn't say why it is null. Recommendations have their measured share
    headline     how an average step is spent, and what to do first
    spent        how an average step is spent, its largest kernel, and what most of its critical path is
    explanation  the same without its first sentence; how the steps vary, which are left out; tokens per second
    left_out     which steps and what time averages of steps leave out, as `explanation` says it; often empty
    gains        where the savings of the recommendations come from, and what they leave out
    recommendations  largest gain first, but code before the waits that hide it; no_advice: why there are none, and
                   what that doesn't mean; empty in a preview, too, where advice may turn up
    beside       what the files of the other ranks say, empty where they weren't read (`overview/ranks` does)
    waiting      null likewise, and where they don't show it
    steps        all, or of more than 2,000 the longest of each stretch, the odd ones, and those with the least and
                 the most of the time and of each category
    step_count   how many were recorded
    step_noun    what a step is in a sentence: "step", or "iteration" of an inference engine
    reasons      category, `steps`, `average` or `hardware` -> why it is null
    """

    preview: bool
    headline: Text
    spent: Text
    explanation: Text
    trace_start_ns: int
    base_ns: int
    steps: list[Step]
    step_count: int
    average: Average | None
    steps_recorded: bool
    devices: list[Device]
    hardware: HardwareUse | None
    configuration: Configuration
    gains: Text
    recommendations: list[Recommendation]
    no_advice: Text
    beside: Text
    waiting: CommunicationParts | None
    reasons: Mapping[str, Text]
    health: list[HealthNote]
    step_noun: str = "step"
    left_out: Text = ()
