"""The payload of the Diff tab: two sides per step, and whether each difference is significant.

Every difference is a key that starts with `delta_`: candidate minus base. Times are means per step in ns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from torch_tb_profiler.analyses.diff.changes import Change, Verdict
from torch_tb_profiler.analyses.diff.name_tables import CallsPerStep
from torch_tb_profiler.views._shared.text import Text

MIN_EFFECT = 0.02
"""Default for the smallest relative change that matters."""

Status = Literal["matched", "renamed", "added", "removed", "moved_in", "moved_out", "not_recorded"]
"""How the sides of a row relate.

matched              the same name on both sides
renamed              another name at the same place
added, removed       only in the candidate, only in the base
moved_in, moved_out  likewise, but it belongs to data loading, which the other side leaves to worker processes that
                     aren't recorded, so it may be neither new nor gone
not_recorded         only on one side, because the other doesn't record such events: neither new nor gone
"""


class DiffSize(msgspec.Struct, frozen=True):
    """A size in bytes on both sides; None where not recorded, see `reasons` of the payload."""

    base_bytes: int | None
    candidate_bytes: int | None
    delta_bytes: int | None
    delta_ratio: float | None


class DiffShare(msgspec.Struct, frozen=True):
    """A ratio 0..1 on both sides, None where unknown; `delta_share` is the difference of the two."""

    base: float | None
    candidate: float | None
    delta_share: float | None


class DiffPart(msgspec.Struct, frozen=True):
    """A part of the logical timeline: all calls of a step at one place of both call trees.

    path             numbers of the children from the root, joined by "-": "" is the root, "3-0" the first part
                     of the fourth; the parameter `path` of `diff/part`
    name             in the base; in the candidate if it was added
    candidate_name   the other name if `status` is renamed, else None
    short_name, short_candidate_name  for a kernel as in DiffKernel, for anything else the names
    kind             step | module | backward | dataloader | optimizer | annotation | operators (those at the
                     top that belong to no module) | threads (work of other threads) | operator | runtime |
                     device (a kernel, memcpy or memset) | unlinked (device work without a recorded launch) |
                     self (self time of the open part, outside its parts)
    parts            how many parts it has of its own; one without any can't be opened
    host, device     time of its calls; time of the device work launched in it
    delta_accumulated_ns         sum of `host.delta_ns` of the parts up to here; delta_device_accumulated_ns: of
                     `device.delta_ns`
    base_event, candidate_event  row of its first call, for the timeline; None where it isn't a call
    """

    path: str
    name: str
    candidate_name: str | None
    short_name: str
    short_candidate_name: str | None
    kind: str
    status: Status
    parts: int
    calls: CallsPerStep
    host: Change
    device: Change
    delta_accumulated_ns: float | None
    delta_device_accumulated_ns: float | None
    base_event: int | None
    candidate_event: int | None


class DiffWork(msgspec.Struct, frozen=True):
    """FLOPs per step of calls with known, nonzero FLOPs, and FLOP/s while these run; None without such calls."""

    base_flops: float | None = None
    candidate_flops: float | None = None
    base_flops_per_s: float | None = None
    candidate_flops_per_s: float | None = None


class DiffOperator(msgspec.Struct, frozen=True):
    """An operator by name, wherever it is called (inside the open part, if one is open).

    work  FLOPs of its calls that own device work
    """

    name: str
    candidate_name: str | None
    status: Status
    calls: CallsPerStep
    host_self: Change
    host_total: Change
    device_self: Change
    device_total: Change
    work: DiffWork = DiffWork()


class DiffCrumb(msgspec.Struct, frozen=True):
    """A part on the path from the root to the open one."""

    path: str
    name: str


class DiffLevel(msgspec.Struct, frozen=True):
    """One part of the step: its own parts in order of time, and the operators inside it.

    parts     in order of time in the base (added ones as in the candidate)
    operators significant changes first, then by size of the change of host self (device self where that is larger)
    """

    path: str
    crumbs: list[DiffCrumb]
    part: DiffPart
    parts: list[DiffPart]
    operators: list[DiffOperator]
    reasons: Mapping[str, Text]


class DiffBar(msgspec.Struct, frozen=True):
    """A part of a waterfall, in integer ns, rounded so that all parts sum to the step exactly on either side.

    base_ns, candidate_ns  None where the category isn't recorded (its time is then part of `other`)
    delta_accumulated_ns   sum of `delta_ns` up to here: where the bar ends
    low_ns, high_ns, q, verdict  as in Change
    """

    name: str
    base_ns: int | None
    candidate_ns: int | None
    delta_ns: int
    delta_accumulated_ns: int
    low_ns: float | None
    high_ns: float | None
    q: float | None
    verdict: Verdict


class DiffWaterfall(msgspec.Struct, frozen=True):
    """The bars from the step of the base to that of the candidate; their `delta_ns` sum to `delta_ns` exactly.

    by  category: the overview's eight; phase: data, optimizer, backward, forward, other (the host between these),
        device (the rest of the step after the host has finished)
    """

    by: Literal["category", "phase"]
    base_ns: int
    candidate_ns: int
    delta_ns: int
    bars: list[DiffBar]


class DiffKernel(msgspec.Struct, frozen=True):
    """Device kernels by name; of graph replays and compiled code by where they come from, before their names.

    short_name  at most 48 characters, unique among the kernels of both sides; short_candidate_name likewise
    family      kind of work: "matrix product", "elementwise", ..., "other"
    """

    name: str
    candidate_name: str | None
    status: Status
    calls: CallsPerStep
    total: Change
    short_name: str
    short_candidate_name: str | None
    family: str


class DiffFamily(msgspec.Struct, frozen=True):
    """Kernels, copies and memsets of one family."""

    name: str
    status: Status
    calls: CallsPerStep
    total: Change


class DiffDevice(msgspec.Struct, frozen=True):
    """An accelerator, paired with that of the other side in order of their ids; names are None if not recorded."""

    base_id: int | None
    candidate_id: int | None
    base_name: str | None
    candidate_name: str | None
    busy: Change
    utilization: DiffShare
    sm_efficiency: DiffShare
    achieved_occupancy: DiffShare
    tensor_core_ratio: DiffShare


class DiffMemory(msgspec.Struct, frozen=True):
    """Peaks of a device's memory over the whole trace."""

    device: str
    peak_allocated: DiffSize
    peak_reserved: DiffSize


class DiffCollective(msgspec.Struct, frozen=True):
    """Communication kernels, or host operations that launched none, by name.

    short_name  for a kernel as in DiffKernel, for an operation the name
    """

    name: str
    short_name: str
    status: Status
    calls: CallsPerStep
    total: Change


class DiffCommunication(msgspec.Struct, frozen=True):
    """Communication per step.

    total    time with any communication
    exposed  the part of it that isn't overlapped with a kernel or copy
    """

    total: Change
    exposed: Change
    collectives: list[DiffCollective]


class DiffOddStep(msgspec.Struct, frozen=True):
    """A step that is left out: its name, what it takes more than a typical step (negative if less), and the code,
    kernel or "" that makes it longer."""

    step: str
    extra_ns: float
    cause: str


class DiffSide(msgspec.Struct, frozen=True):
    """One side: a single recording, or several one after the other.

    rank, devices, trace_start_ns, base_ns  those of the first recording
    recordings      counted steps of each recording
    steps           names of the counted steps; all numbers are per one of these
    durations_ns    duration of each step
    typical_ns      mean of the counted steps; with several recordings the mean of their means
    mean_low_ns, mean_high_ns  its interval, None with fewer than two steps
    left_out        steps left out because their device work is missing
    warm_up_ns      durations of first steps left out as warm-up, at most one per recording
    odd_steps       other steps that are left out, as they are far longer or shorter than the typical ones
    steps_recorded  False if the entire trace counts as one step
    outside_calls   operator calls outside the counted steps; no number includes them
    """

    rank: int | None
    device_type: str
    devices: list[str]
    recordings: list[int]
    steps: list[str]
    durations_ns: list[int]
    typical_ns: float
    mean_low_ns: float | None
    mean_high_ns: float | None
    left_out: int
    warm_up_ns: list[int]
    odd_steps: list[DiffOddStep]
    steps_recorded: bool
    outside_calls: int
    trace_start_ns: int
    base_ns: int


class DiffPhase(msgspec.Struct, frozen=True):
    """The iterations of one phase of two inference engines.

    iterations  of the base and of the candidate
    tokens      mean number of tokens in one, on either side; None where the labels don't count them
    iteration   change of their duration, without waits for requests
    per_token   change of all of their time over all of their tokens
    """

    phase: str
    iterations: tuple[int, int]
    tokens: tuple[float | None, float | None]
    iteration: Change
    per_token: Change


class DiffPayload(msgspec.Struct, frozen=True):
    """What changed between two sides, and whether it is significant.

    headline    how a typical step changed, and whether that is proven
    explanation what explains it, one sentence each: categories, operators
    notes       what to keep in mind: different step counts, devices or ranks, and what limits the verdict
    confidence  confidence level of the intervals
    min_effect  smallest change that matters, as a share of the base's value
    one_run     both sides are recordings of one run, hence of one program
    autocorrelation  correlation of consecutive steps, 0..1; correlated steps count as fewer
    step        duration of the step, in integer ns as in the waterfalls
    samples     samples per step of the base and of the candidate where they differ, else None: then `headline` is
                about `per_sample`, the time per sample, as steps do another amount of work
    serving     iterations of inference engines by phase; then `headline` is about the time per token. Empty for
                other programs
    level       the root of the logical timeline, as `diff/part` answers for every other part
    kernels, families  sorted as the operators
    work        FLOPs of matrix operators; work_coverage: share of the device time whose FLOPs or bytes are known
    reasons     field -> why it is null
    step_noun   what a step is in a sentence: "step", or "iteration" if both sides are inference engines
    """

    headline: Text
    base: DiffSide
    candidate: DiffSide
    explanation: list[Text]
    notes: list[Text]
    confidence: float
    min_effect: float
    one_run: bool
    autocorrelation: float
    step: Change
    samples: tuple[int, int] | None
    per_sample: Change | None
    serving: list[DiffPhase]
    waterfalls: list[DiffWaterfall]
    level: DiffLevel
    kernels: list[DiffKernel]
    families: list[DiffFamily]
    work: DiffWork
    work_coverage: DiffShare
    devices: list[DiffDevice]
    memory: list[DiffMemory]
    communication: DiffCommunication
    reasons: Mapping[str, Text]
    step_noun: str = "step"


class DiffParams(msgspec.Struct, frozen=True):
    """`min_effect` is the smallest relative change that matters, 0..1."""

    min_effect: Annotated[float, msgspec.Meta(ge=0, le=10)] = MIN_EFFECT


class DiffPartParams(DiffParams, frozen=True):
    """`path` names the open part; "" is the root."""

    path: str = ""
