"""What the distributed view says: the shape of its payloads.

Durations are ns. `..._ns` points in time count on the *job's clock*, whose zero is the first event of the first
rank; `Clock.shift_ns` leads from a rank's own times to it. A null is explained in `reasons`, by field name.
Bandwidth is bytes per second (10^9 is one GB/s).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Clock(msgspec.Struct, frozen=True):
    """How a rank's clock was brought onto the job's.

    method       reference: it sets the clock; base_time: by the time of day in the file (`baseTimeNanoseconds`);
                 collective_ends: by the ends of collectives it shares with the others, on top of the time of day
                 where there is one; none: its times cannot be compared
    offset_ns    what the collectives' ends corrected the time of day by; null where there was none to correct
    residual_ns  how far ends of shared collectives still lie apart (median): the error of a comparison; null
                 where the rank shares none that end together
    collectives  how many shared collectives that rests on
    shift_ns     job time = time in the rank's trace + shift_ns; null with method none
    """

    method: str
    offset_ns: int | None
    residual_ns: int | None
    collectives: int
    shift_ns: int | None


class Rank(msgspec.Struct, frozen=True):
    """One worker of the run.

    state     waiting, loading, ready or failed; `reason` says why it failed, or why a ready one is left out
    compared  it takes part in the comparison between ranks
    recording_start_ns  job time of its first event; late ones missed what the others already recorded
    calls     its communication operations; null while it is not ready
    """

    worker: str
    rank: int | None
    span: str
    state: str
    reason: str | None
    compared: bool
    backend: str | None
    world_size: int | None
    calls: int | None
    recording_start_ns: int | None
    recording_duration_ns: int | None
    clock: Clock | None


class DeviceEntry(msgspec.Struct, frozen=True):
    """One accelerator that a process used."""

    id: int
    kind: str
    name: str | None
    memory_bytes: int | None
    compute_capability: str | None


class Process(msgspec.Struct, frozen=True):
    """One process of a node; `name` is its process id where that is known."""

    name: str
    worker: str
    rank: int | None
    devices: list[DeviceEntry]


class Node(msgspec.Struct, frozen=True):
    """One host and its processes."""

    name: str
    processes: list[Process]


class StepTimes(msgspec.Struct, frozen=True):
    """One step of one worker: duration = computation + overlap + communication + other, to the ns.

    start_ns     in the worker's own trace
    computation  non-communication kernels (without a GPU: CPU Exec of the overview) while nothing is communicated
    overlap      both at once
    communication  exposed: communication that no computation hides
    complete     False for a trailing step whose device work is missing; in no average
    """

    worker: str
    rank: int | None
    step: str
    start_ns: int
    complete: bool
    duration_ns: int
    computation_ns: int
    overlap_ns: int
    communication_ns: int
    other_ns: int


class AverageTimes(msgspec.Struct, frozen=True):
    """Mean over the complete steps of one worker (not rounded)."""

    worker: str
    rank: int | None
    steps: int
    duration_ns: float
    computation_ns: float
    overlap_ns: float
    communication_ns: float
    other_ns: float


class Waiting(msgspec.Struct, frozen=True):
    """A worker's communication in one step: moving data, and waiting for other ranks to arrive.

    step  null for operations outside the steps
    transfer_ns, synchronizing_ns  over the operations that were compared; null if none was
    """

    worker: str
    rank: int | None
    step: str | None
    transfer_ns: int | None
    synchronizing_ns: int | None


class AverageWaiting(msgspec.Struct, frozen=True):
    """Mean over the complete steps of one worker (not rounded)."""

    worker: str
    rank: int | None
    transfer_ns: float | None
    synchronizing_ns: float | None


class CollectiveRow(msgspec.Struct, frozen=True):
    """Communication operations of one worker that share group and name, whole recording.

    name           as the profiler names it: back end, colon, collective (`nccl:all_reduce`)
    bytes          what the rank puts in, all calls; null if no call records a size
    out_bytes      what it gets out
    message_bytes  the size that bandwidth is told for (of an all-gather what comes out)
    latency_ns     time in which one of them runs
    transfer_ns    the part after the last rank arrived; synchronizing_ns the rest; null if none was compared
    exposed_ns     the part of latency_ns that no computation hides
    algorithm_bandwidth, bus_bandwidth  message_bytes per second of transfer, and that times the collective's
                   factor (all-reduce 2(n-1)/n, all-gather, reduce-scatter, all-to-all (n-1)/n)
    lower_bound    the bandwidths rest on the whole latency, waiting included: they are at least that
    timing         device, host (no device work was recorded: the host's calls) or none
    """

    worker: str
    rank: int | None
    group: int
    name: str
    collective: str
    backend: str | None
    calls: int
    bytes: int | None
    out_bytes: int | None
    message_bytes: int | None
    latency_ns: int | None
    transfer_ns: int | None
    synchronizing_ns: int | None
    exposed_ns: int | None
    algorithm_bandwidth: float | None
    bus_bandwidth: float | None
    lower_bound: bool
    timing: str


class Operation(msgspec.Struct, frozen=True):
    """The same over all ranks of a group: sums over ranks, `skew_ns` over the operations.

    operations  matched across ranks: what every rank does once counts once
    compared    of these, those that at least two ranks recorded alike
    mean_skew_ns, max_skew_ns  first to last arrival; null without two ranks on one clock
    """

    name: str
    collective: str
    operations: int
    compared: int
    calls: int
    bytes: int | None
    message_bytes: int | None
    latency_ns: int | None
    transfer_ns: int | None
    synchronizing_ns: int | None
    exposed_ns: int | None
    mean_skew_ns: float | None
    max_skew_ns: int | None
    algorithm_bandwidth: float | None
    bus_bandwidth: float | None
    lower_bound: bool


class Group(msgspec.Struct, frozen=True):
    """One process group: a name *and* its ranks, as the same name serves several.

    id           names the group in rows and parameters
    name         null: the traces do not say in which group they communicate
    ranks        null if unknown
    size         null if unknown
    assumed      name and ranks are not recorded with the operations; they follow from the job's description
    matched_by   sequence_number, order (n-th operation of the group), peers (n-th message from one rank to
                 another) or null with one rank
    workers      that communicate in it
    absent_ranks ranks of the group of which no trace is here
    """

    id: int
    name: str | None
    description: str | None
    ranks: list[int] | None
    size: int | None
    assumed: bool
    backends: list[str]
    matched_by: str | None
    workers: list[str]
    absent_ranks: list[int]
    operations: list[Operation]
    mismatches: int


class Differing(msgspec.Struct, frozen=True):
    """A value and who has it."""

    value: str
    workers: list[str]


class Mismatch(msgspec.Struct, frozen=True):
    """Operations that should be one and the same but differ between ranks; they are in no comparison.

    what  name, size, dtype, or missing (ranks in the middle of whose recording it is absent)
    collective  its id in the part `distributed/collective`
    """

    group: int
    collective: int
    step: str | None
    what: str
    values: list[Differing]
    text: str


class Straggler(msgspec.Struct, frozen=True):
    """How often and how much a rank kept the others waiting; most delay first.

    collectives  compared ones it took part in whose arrivals differ by more than the error of the clocks
    last, last_ratio  of these, how often it arrived last
    delay_ns     time between the median arrival of the other ranks and its own in those, less what it waited for
                 others before; time in which several collectives wait for it counts once
    delay_per_step_ns  that over the number of steps
    waited_ns    its own waiting for others, all compared collectives
    """

    worker: str
    rank: int | None
    collectives: int
    last: int
    last_ratio: float | None
    delay_ns: int
    delay_per_step_ns: float
    waited_ns: int


class HeatMap(msgspec.Struct, frozen=True):
    """rank x step: sum over the step's compared collectives of how long after the median rank this one came.

    late_ns  a row per worker, a cell per step; null where nothing was compared
    """

    workers: list[str]
    steps: list[str]
    late_ns: list[list[int | None]]


class Share(msgspec.Struct, frozen=True):
    """Time by name: of the late rank beside the median rank's in the same places.

    median_ns  null where it is not among the largest of the median rank: then it is less than those
    """

    name: str
    late_ns: int
    median_ns: int | None


class Meanwhile(msgspec.Struct, frozen=True):
    """What a rank did between the previous collective and the one where it came last, summed over those.

    collectives  how many of them count: those that make up 90 % of its lateness, and of windows of different
                 groups that overlap one; steps: in how many steps these lie
    window_ns   that time; median_window_ns the one of the rank that arrived in the middle
    categories  the overview's eight categories, in order
    host        operators and annotations by their own time, largest difference first
    kernels     device work by name, likewise
    """

    worker: str
    rank: int | None
    collectives: int
    steps: int
    window_ns: int
    median_window_ns: int
    categories: list[Share]
    host: list[Share]
    kernels: list[Share]


class Verdict(msgspec.Struct, frozen=True):
    """The answer in words. `kind`: straggler, balanced, unknown; `worker` whom it names, or null."""

    kind: str
    text: str
    worker: str | None
    rank: int | None


class Problem(msgspec.Struct, frozen=True):
    """What is missing or doubtful.

    kind  loading, broken_rank, left_out, missing_rank, duplicate_rank, world_size, clock, start_skew, mismatch,
          unmatched
    """

    kind: str
    text: str
    worker: str | None
    rank: int | None


class Distributed(msgspec.Struct, frozen=True):
    """The payload of the tab.

    origin_ns      the zero of the job's clock as ns since the epoch, null if no file tells the time of day
    start_skew_ns  from the first to the last rank to begin recording; null without two ranks on one clock
    mismatches     the first hundred; mismatch_count all
    """

    verdict: Verdict
    problems: list[Problem]
    ranks: list[Rank]
    nodes: list[Node]
    origin_ns: int | None
    start_skew_ns: int | None
    overview: list[StepTimes]
    averages: list[AverageTimes]
    waiting: list[Waiting]
    average_waiting: list[AverageWaiting]
    collectives: list[CollectiveRow]
    groups: list[Group]
    mismatches: list[Mismatch]
    mismatch_count: int
    stragglers: list[Straggler]
    heat_map: HeatMap | None
    meanwhile: list[Meanwhile]
    reasons: Mapping[str, str]
