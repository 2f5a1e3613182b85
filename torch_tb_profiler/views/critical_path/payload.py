"""The parameters and payloads of the Critical path view."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from torch_tb_profiler.analyses.schedule.places import PlaceKind
from torch_tb_profiler.view import Page
from torch_tb_profiler.views._shared.job.exposed import CommunicationParts
from torch_tb_profiler.views._shared.text import Text


class CriticalPathParams(msgspec.Struct, frozen=True):
    """`what_if`: a change to estimate, TARGET:PERCENT; `operator:aten::mul:50` removes 50% of its time."""

    what_if: str = ""


class TargetParams(msgspec.Struct, frozen=True):
    """`target`: `kind` or `kind:name`, as in the rows of the table."""

    target: str


class PathSegmentsParams(Page, frozen=True, kw_only=True):
    """A page of the segments of the path; `step`: of one step only."""

    step: str = ""


class PathGroupsParams(msgspec.Struct, frozen=True):
    """`by`: what a row is; `step`: of one step only."""

    by: PlaceKind = "line"
    step: str = ""


class PathCategory(msgspec.Struct, frozen=True):
    """A category of the path, per mean step. `group`: host, device or latency; `link` opens the evidence."""

    name: str
    title: str
    group: str
    time_ns: float
    link: str | None


class StepPath(msgspec.Struct, frozen=True):
    """The path of one complete step by group; the three sum to the step. Times are on the host's clock."""

    name: str
    begin_ns: int
    duration_ns: int
    host_ns: int
    device_ns: int
    latency_ns: int


class PathSummary(msgspec.Struct, frozen=True):
    """The path of the mean typical step; its categories sum to `duration_ns`.

    odd  names of the other steps
    saves_at_most  no recorded call says what waits for communication, so what-ifs save at most what they say
    attainable_ns  the step with kernels twice as fast, but none faster than its roofline allows; null if all can
                   be, as far as is known
    """

    duration_ns: float
    steps: int
    categories: list[PathCategory]
    odd: list[str]
    saves_at_most: bool = False
    attainable_ns: int | None = None


class TargetRow(msgspec.Struct, frozen=True):
    """What an average step saves if one target gets faster.

    target    as in parameters
    kind, title  for people
    path_ns   its time on the path; targets overlap
    calls     number of calls, launches or waits
    slack_ns  half of its calls may each take this much longer; None if nothing in the steps waits for them
    event     row of its call with most time on the path, None for the host as a whole
    step_ns   the step with 0, 25, 50, 75, 100 % of its time removed; None: `critical_path/what_if` has it
    """

    target: str
    kind: str
    title: str
    path_ns: float
    calls: float
    slack_ns: int | None
    event: int | None
    step_ns: list[int] | None


class WhatIfResult(msgspec.Struct, frozen=True):
    """The mean step if `percent` of a target's time is removed; waits are removed at 100 % only."""

    target: str
    percent: int
    step_ns: int


class CriticalPathPayload(msgspec.Struct, frozen=True):
    """What limits a step, and what a change would save.

    headline, explanation  what limits the step, and the largest part of that
    limits     what no what-if models, and whether the device clock was shifted
    path       of the mean step
    odd_steps  which steps are far from the others, by how much, and why; empty without any
    steps_recorded  False: the trace records no steps and is shown as one
    targets    most time on the path first
    what_if    the targets without a name at each percent of `percents`, and the requested change
    explained  share of device work in complete steps that starts within 20 us of what the schedule says; None
               without device work
    clock_shift_ns  shift of device times, so that nothing starts before its launch
    reasons    field -> what is unknown, and why
    device_type  as in `device_kind`
    step_noun  what a step is in a sentence: "step", or "iteration" of an inference engine
    communication  the communication on the path, split; None until the other ranks are read
    beside     what the other ranks' traces say about it; empty until they are read (`critical_path/beside` does)
    """

    headline: Text
    explanation: Text
    limits: Text
    path: PathSummary
    steps: list[StepPath]
    steps_recorded: bool
    odd_steps: Text
    targets: list[TargetRow]
    percents: list[int]
    what_if: list[WhatIfResult]
    explained: float | None
    clock_shift_ns: int
    reasons: Mapping[str, Text]
    device_type: str
    communication: CommunicationParts | None = None
    beside: Text = ()
    step_noun: str = "step"


class PathSegmentsPayload(msgspec.Struct, frozen=True):
    """Segments of the path in order of time, as columns; `total` before the page was cut.

    category  name as in `PathCategory`
    event     row of the slice, item or call; None where nothing is recorded
    begin_ns, duration_ns  on the host's clock: device times are shifted by `clock_shift_ns`
    step      number among the complete steps
    """

    category: list[str]
    event: list[int | None]
    begin_ns: list[int]
    duration_ns: list[int]
    step: list[int]
    total: int
    clock_shift_ns: int


class PathGroupRow(msgspec.Struct, frozen=True):
    """The segments of the path that belong to an operator, a module or a source line; per mean step.

    name     None: no recorded place; `title` says so
    time_ns  on the host, on the device and in latencies, together
    target   the place as a what-if target, including what it calls; None if it can't be one
    event    row of its longest segment; None if nothing is recorded there
    others   0, or how many further names this row sums up
    """

    name: str | None
    title: str
    time_ns: float
    host_ns: float
    device_ns: float
    latency_ns: float
    target: str | None
    event: int | None
    others: int


class PathGroupsPayload(msgspec.Struct, frozen=True):
    """The path by operator, module or source line: each segment is in the row of its innermost place.

    duration_ns  of the mean step, to which the rows sum
    reasons      field -> what is unknown, and why
    """

    by: PlaceKind
    duration_ns: float
    steps: int
    rows: list[PathGroupRow]
    reasons: Mapping[str, Text]


class JobPathParams(Page, frozen=True, kw_only=True):
    """A page of the segments of the job's path; `step`: those that end in one step."""

    limit: Annotated[int, msgspec.Meta(ge=0)] | None = 500
    step: str = ""


class RankOnPath(msgspec.Struct, frozen=True):
    """The part of the job's path on one rank, per mean step; its categories sum to `path_ns`."""

    worker: str
    rank: int | None
    path_ns: float
    categories: list[PathCategory]


class JobPathSegment(msgspec.Struct, frozen=True):
    """A segment of the job's path: on one rank, in one step, until it changes to another rank or the next step.

    begin_ns, duration_ns  since the rank's trace began, on its host's clock; the four times sum to the duration
    collective  for which the next rank waited; None if the path stays on this rank
    collective_id  its id in `distributed/collectives`
    link        opens the rank's timeline there, with the path highlighted
    """

    worker: str
    rank: int | None
    step: str
    begin_ns: int
    duration_ns: int
    host_ns: int
    device_ns: int
    communication_ns: int
    latency_ns: int
    collective: str | None
    collective_id: int | None
    link: str


class JobPathPayload(msgspec.Struct, frozen=True):
    """The critical path of all ranks of a job.

    headline     which rank has most of it; empty while ranks are read
    explanation  which rank is late and what that costs, as in `distributed`
    duration_ns  of the mean step of the rank that the path ends on
    ranks        most of the path first; ranks that aren't on it are left out
    stays        the segments in order of time, `total` before the page was cut
    late_ranks   stragglers, without whose lateness a step would be `late_gain_ns` shorter; None if there is none
    reasons      field -> what is unknown, and why
    """

    headline: Text
    explanation: Text
    duration_ns: float
    steps: int
    ranks: list[RankOnPath]
    stays: list[JobPathSegment]
    total: int
    late_ranks: list[str]
    late_gain_ns: float | None
    reasons: Mapping[str, Text]
