"""What the Idle time view answers."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from torch_tb_profiler.analyses.idle.table import SubjectKind
from torch_tb_profiler.view import Page
from torch_tb_profiler.views._shared.job.exposed import CommunicationParts
from torch_tb_profiler.views._shared.text import Text


class IdleParams(msgspec.Struct, frozen=True):
    """`by`: what the subject of a row is. Of one complete step, one device (by default the one with most work),
    and one stream of it (by default the device as a whole)."""

    by: SubjectKind = "cause"
    step: str = ""
    device: int | None = None
    stream: int | None = None


class IdleGapsParams(Page, frozen=True):
    """The parts of a row of the table: its `cause`, and its `subject` where it has one."""

    cause: str
    subject: str | None = None
    by: SubjectKind = "cause"
    step: str = ""
    device: int | None = None
    stream: int | None = None


class AwaitedRank(msgspec.Struct, frozen=True):
    """Exposed communication that waits for a rank, which arrives last: ns of one step, or per counted step."""

    worker: str
    rank: int | None
    waiting_ns: float


class IdleStep(msgspec.Struct, frozen=True):
    """A step on the device; compute + exposed communication + exposed copies + idle = duration, exactly.

    transfer_ns, waiting_ns  parts of the exposed communication: data moves; it waits for other ranks, at least;
                what no other rank tells is in neither; null, see `reasons`
    waits_for   the ranks that it waits for, most first
    complete    False: device work is missing; such a step is in no sum
    """

    name: str
    start_ns: int
    duration_ns: int
    compute_ns: int
    exposed_communication_ns: int
    transfer_ns: int | None
    waiting_ns: int | None
    waits_for: list[AwaitedRank]
    exposed_copy_ns: int
    idle_ns: int
    complete: bool


class IdleRow(msgspec.Struct, frozen=True):
    """Idle time of one cause and subject, in all steps that count.

    subject     null: nothing is recorded; by emptied_by: no call, the device caught up with the host
    short_subject  of a kernel as the Kernels view has it, of all else the subject
    event       row of what is to blame in the longest part; null: nothing is recorded
    begin_ns, end_ns  the longest part
    gaps        gaps with a part of this row; median_ns: of the parts
    emptied_by  the call that had emptied the queue before most of it; null: none had
    emptied_ns  time before which some call had emptied the queue
    gain_ns     how much shorter a counted step is, at most, if the host takes no time here; null, see `reasons`
    others      0, or how many further subjects of the cause this row sums up
    """

    cause: str
    subject: str | None
    short_subject: str | None
    event: int | None
    begin_ns: int
    end_ns: int
    time_ns: int
    gaps: int
    median_ns: float
    emptied_by: str | None
    emptied_ns: int
    gain_ns: float | None
    others: int


class IdleCauseTotal(msgspec.Struct, frozen=True):
    """All rows of a cause together: a gap with parts of several subjects counts once; `gain_ns` as of a row."""

    cause: str
    time_ns: int
    gaps: int
    gain_ns: float | None


class IdleStream(msgspec.Struct, frozen=True):
    """A stream with work."""

    device: int
    stream: int


class IdlePayload(msgspec.Struct, frozen=True):
    """Where the time of the complete steps (or of the chosen one) goes on one device or stream.

    device_type     CUDA, ROCm, XPU, HPU, NPU, MTIA or other
    counted         steps that the sums are over
    communication   the exposed communication of the average counted step; null, see `waiting_ns` in `reasons`
    waits_for       the ranks that it waits for, most first; what no rank is known to arrive last at is in none
    beside          what the other ranks' files say of it; empty where they were not asked (`idle/ranks` does)
    causes          rows, most time first; they sum to `idle_ns`
    sums            the causes, likewise
    gaps            gaps of the device
    caught_up_ns    idle time before which no call had emptied the queue
    launch_bound    most idle time is the host's launching while nothing had emptied the queue
    launch_ns, item_ns  medians: from one launch call to the next on its thread; duration of an item
    explained       share of the device's work that starts when the recorded launches and waits say; null: no work
    clock_shift_ns  by which the device's clock is moved to compare it with the host's
    limits          how well the recorded launches and waits explain the work, and what one rank cannot show
    reasons         field -> why it is null
    """

    headline: Text
    explanation: Text
    device: int
    device_type: str
    stream: int | None
    streams: list[IdleStream]
    by: SubjectKind
    steps: list[IdleStep]
    steps_recorded: bool
    counted: int
    duration_ns: int
    compute_ns: int
    exposed_communication_ns: int
    exposed_copy_ns: int
    idle_ns: int
    communication: CommunicationParts | None
    waits_for: list[AwaitedRank]
    beside: Text
    causes: list[IdleRow]
    sums: list[IdleCauseTotal]
    gaps: int
    caught_up_ns: int
    launch_bound: bool
    launch_ns: float | None
    item_ns: float | None
    explained: float | None
    clock_shift_ns: int
    limits: Text
    reasons: Mapping[str, Text]


class IdleGapRow(msgspec.Struct, frozen=True):
    """A part of a gap. `event`: what is to blame; `emptied_by`: row of the call that had emptied the queue.

    short_name  of a kernel as the Kernels view has it, of all else the name
    """

    begin_ns: int
    end_ns: int
    step: str
    event: int | None
    name: str | None
    short_name: str | None
    emptied_by: int | None


class IdleGapsPayload(msgspec.Struct, frozen=True):
    """Parts of a row, longest first."""

    total: int
    time_ns: int
    rows: list[IdleGapRow]


class IdleFrame(msgspec.Struct, frozen=True):
    """A frame of the flame graph: a cause (`parent` null), and in it what the host was in.

    short_name  of a kernel as the Kernels view has it, of all else the name
    """

    name: str
    short_name: str
    cause: str
    parent: int | None
    value_ns: int
    event: int | None


class IdleFlamePayload(msgspec.Struct, frozen=True):
    """Frames, each after the one around it; those below a thousandth of `total_ns` are left out."""

    total_ns: int
    frames: list[IdleFrame]
