"""The parameters and payloads of the Idle time view; those about launches are in `launches`."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from torch_tb_profiler.analyses.idle.table import SubjectKind
from torch_tb_profiler.view import Page
from torch_tb_profiler.views._shared.job.exposed import CommunicationParts
from torch_tb_profiler.views._shared.text import Text


class IdleParams(msgspec.Struct, frozen=True):
    """Which idle time to show, and by what.

    by      what the subject of a row is
    step    one complete step; the typical ones by default
    device  the device with most work by default
    stream  one stream of the device; the device as a whole by default
    """

    by: SubjectKind = "cause"
    step: str = ""
    device: int | None = None
    stream: int | None = None


class IdleGapsParams(Page, frozen=True):
    """A page of the segments of a row of the table: its `cause`, and its `subject` if it has one."""

    cause: str
    subject: str | None = None
    by: SubjectKind = "cause"
    step: str = ""
    device: int | None = None
    stream: int | None = None


class AwaitedRank(msgspec.Struct, frozen=True):
    """A rank that arrives late, and the exposed communication that waits for it: ns of one step, or per step."""

    worker: str
    rank: int | None
    waiting_ns: float


class IdleStep(msgspec.Struct, frozen=True):
    """A step on the device: compute + exposed communication + exposed copies + idle = duration, exactly.

    transfer_ns  exposed communication in which data moves; null, see `reasons`
    waiting_ns   exposed communication that waits for other ranks, at least; null, see `reasons`
    waits_for    the ranks that it waits for, largest first
    complete     False: device work is missing, and the step is in no sum
    typical      False: the step is far from the others, and in no sum unless it is chosen
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
    typical: bool


class IdleRow(msgspec.Struct, frozen=True):
    """Idle time of one cause and subject, in all counted steps.

    subject        null: nothing is recorded; by emptied_by: no call, the device caught up with the host
    short_subject  the short name of a kernel, else the subject
    event          row of the event to blame for the longest segment; null: nothing is recorded
    begin_ns, end_ns  the longest segment
    gaps           number of gaps with a segment of this row; median_ns: of the segments
    emptied_by     the call that drained the queue before most of it; null: none did
    emptied_ns     time before which a call had drained the queue
    gain_ns        how much shorter a counted step is, at most, if the host takes no time here; null, see `reasons`
    others         0, or how many further subjects of the cause this row sums up
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
    """The rows of a cause together; a gap in several of them counts once. `gain_ns` as in IdleRow."""

    cause: str
    time_ns: int
    gaps: int
    gain_ns: float | None


class IdleStream(msgspec.Struct, frozen=True):
    """A stream with work."""

    device: int
    stream: int


class IdlePayload(msgspec.Struct, frozen=True):
    """Why a device or stream is idle, and how the typical steps (or the chosen one) spend its time.

    device_type     CUDA, ROCm, XPU, HPU, NPU, MTIA or other
    counted         number of steps in the sums
    communication   the exposed communication of the average counted step; null, see `waiting_ns` in `reasons`
    waits_for       the ranks that it waits for, largest first; waits for no known rank are in none
    beside          what the other ranks' traces say about it; empty until they are read (`idle/ranks` does)
    causes          rows, largest first; they sum to `idle_ns`
    sums            the totals of the causes, largest first
    gaps            number of gaps of the device
    caught_up_ns    idle time before which no call had drained the queue
    launch_bound    the host's launching causes most idle time, and no call had drained the queue before
    launch_ns, item_ns  medians: from one launch call to the next on its thread; duration of an item
    explained       share of the device work in complete steps whose start the recorded launches and syncs explain;
                    null: no work, or no recorded launch
    clock_shift_ns  shift of the device clock that makes it comparable with the host's
    limits          how well the recorded launches and syncs explain the work, and what one rank can't show
    reasons         field -> why it is null
    step_noun       what a step is in a sentence: "step", or "iteration" of an inference engine
    steps           all, or of more than 2,000 a selection: of each stretch the longest; sums count all
    complete_steps  number of complete steps, listed or not
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
    step_noun: str = "step"
    complete_steps: int = 0


class IdleGapRow(msgspec.Struct, frozen=True):
    """A segment of a gap.

    event       row of the event to blame
    short_name  the short name of a kernel, else the name
    emptied_by  row of the call that drained the queue
    """

    begin_ns: int
    end_ns: int
    step: str
    event: int | None
    name: str | None
    short_name: str | None
    emptied_by: int | None


class IdleGapsPayload(msgspec.Struct, frozen=True):
    """Segments of a row, longest first; `total` before the page was cut."""

    total: int
    time_ns: int
    rows: list[IdleGapRow]


class IdleFrame(msgspec.Struct, frozen=True):
    """A frame of the flame graph: a cause (`parent` null), and within it what the host was in.

    short_name  the short name of a kernel, else the name
    """

    name: str
    short_name: str
    cause: str
    parent: int | None
    value_ns: int
    event: int | None


class IdleFlamePayload(msgspec.Struct, frozen=True):
    """Frames, each after the frame around it; those below a thousandth of `total_ns` are left out."""

    total_ns: int
    frames: list[IdleFrame]
