"""What the critical path and its parts answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from torch_tb_profiler.analyses.schedule.places import PlaceKind
from torch_tb_profiler.view import Page
from torch_tb_profiler.views._shared.text import Text


class CriticalPathParams(msgspec.Struct, frozen=True):
    """`what_if`: a further change, TARGET:PERCENT (`operator:aten::mul:50`): so much of its time is gone."""

    what_if: str = ""


class TargetParams(msgspec.Struct, frozen=True):
    """`target`: `kind` or `kind:name`, as the rows of the table spell it."""

    target: str


class PathSegmentsParams(Page, frozen=True, kw_only=True):
    """A page of the pieces; `step`: those of one step."""

    step: str = ""


class PathGroupsParams(msgspec.Struct, frozen=True):
    """`by`: what a row is; `step`: of one step alone."""

    by: PlaceKind = "line"
    step: str = ""


class PathCategory(msgspec.Struct, frozen=True):
    """What happens on the path, per mean step. `group`: host, device or latency; `link` opens the evidence."""

    name: str
    title: str
    group: str
    time_ns: float
    link: str | None


class StepPath(msgspec.Struct, frozen=True):
    """One complete step; its time on the path by group sums to it. Times on the host's clock."""

    name: str
    begin_ns: int
    duration_ns: int
    host_ns: int
    device_ns: int
    latency_ns: int


class PathSummary(msgspec.Struct, frozen=True):
    """The path of the mean complete step; its categories sum to `duration_ns`."""

    duration_ns: float
    steps: int
    categories: list[PathCategory]


class TargetRow(msgspec.Struct, frozen=True):
    """What could be faster; per mean step.

    target    how it is spelled in parameters
    kind, title  of people's words
    path_ns   its time on the path; targets overlap
    calls     calls, launches or waits
    slack_ns  half of its calls may take this much longer, each alone; None if nothing in the steps waits for them
    event     row of its call with most time on the path, None for the host as a whole
    step_ns   the step with 0, 25, 50, 75, 100 % of its time gone; None: `critical_path/what_if` answers it
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
    """ns of the mean step if so much of a target's time is gone; a wait is gone at 100 % only."""

    target: str
    percent: int
    step_ns: int


class CriticalPathPayload(msgspec.Struct, frozen=True):
    """What bounds the steps of a trace.

    headline, explanation  what bounds the step, and what the largest part of that is
    limits     what no what-if knows, and whether the device's clock was moved
    path       of the mean step
    steps_recorded  whether `steps` were recorded; without any, the whole trace is the only one
    targets    most time on the path first
    what_if    of the targets without a name at each percent of `percents`, and what was asked for
    explained  share of device work that starts within 20 us of what the schedule says; None without device work
    clock_shift_ns  how far device times were moved so that nothing starts before its launch
    reasons    field -> what is not known, and why
    """

    headline: Text
    explanation: Text
    limits: Text
    path: PathSummary
    steps: list[StepPath]
    steps_recorded: bool
    targets: list[TargetRow]
    percents: list[int]
    what_if: list[WhatIfResult]
    explained: float | None
    clock_shift_ns: int
    reasons: Mapping[str, Text]


class PathSegmentsPayload(msgspec.Struct, frozen=True):
    """Pieces of the path in order of time, as columns; `total` before the page was cut.

    category  name as in `PathCategory`
    event     row of the slice, item or call; None where nothing is recorded
    begin_ns, duration_ns  on the host's clock: device times are moved by `clock_shift_ns`
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
    """What of the path belongs to an operator, a module or a line of the program; per mean step.

    name    None: to none that is recorded; `title` says that in words
    time_ns  on the host, on the device and in latencies, together
    target  how it is spelled as what could be faster, with all that it calls; None if it cannot be
    event   row of its longest piece; None if nothing is recorded there
    others  0, or how many further names this row sums up
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
    """The path by operator, module or line of the program: each piece is in one row, that of the innermost.

    duration_ns  of the mean step, to which the rows sum
    reasons      field -> what is not known, and why
    """

    by: PlaceKind
    duration_ns: float
    steps: int
    rows: list[PathGroupRow]
    reasons: Mapping[str, Text]


class JobPathParams(Page, frozen=True, kw_only=True):
    """A page of the stays; `step`: those that end in one step."""

    limit: Annotated[int, msgspec.Meta(ge=0)] | None = 500
    step: str = ""


class RankOnPath(msgspec.Struct, frozen=True):
    """What of the job's path lies on a rank, per mean step; its categories sum to `path_ns`."""

    worker: str
    rank: int | None
    path_ns: float
    categories: list[PathCategory]


class JobPathSegment(msgspec.Struct, frozen=True):
    """The path on one rank, in one of its steps, until it goes on at another rank or in the next step.

    begin_ns, duration_ns  on the host's clock of that rank, since its trace began; the four times sum to it
    collective  that the next rank waited for, and the id of it in `distributed/collectives`; None if it stays
    link        opens the rank's timeline there, with the path lit
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

    headline     where it passes; empty while ranks are read
    explanation  which rank is late and what that costs, as `distributed` says
    duration_ns  of the mean step of the rank that the path ends on
    ranks        most of the path first; those without any are left out
    stays        in order of time, `total` before the page was cut
    late_ranks   workers without whose lateness a step is `late_gain_ns` shorter; None if none stands out
    reasons      field -> what is not known, and why
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
