"""Payloads about communication: waiting by step, operations by worker and by process group, mismatches."""

from __future__ import annotations

import msgspec

from torch_tb_profiler.views._shared.text import Text


class StepWaitingRow(msgspec.Struct, frozen=True):
    """Communication of a worker in one step: moving data, and waiting for other ranks to arrive.

    step  null for operations outside the steps
    transfer_ns, waiting_ns  of the operations that were compared; null if none was
    """

    worker: str
    rank: int | None
    step: str | None
    transfer_ns: int | None
    waiting_ns: int | None


class AverageWaitingRow(msgspec.Struct, frozen=True):
    """Mean over the typical steps of one worker (not rounded)."""

    worker: str
    rank: int | None
    transfer_ns: float | None
    waiting_ns: float | None


class RankCollectiveRow(msgspec.Struct, frozen=True):
    """Communication operations of one worker that share group and name, over the entire recording.

    group_label    the description or name of the group
    name           as the profiler names it: back end, colon, collective (`nccl:all_reduce`)
    bytes          what the rank puts in, all calls; null if no call records a size
    out_bytes      what it gets out
    message_bytes  the size that bandwidth refers to (of an all-gather what comes out)
    latency_ns     time while at least one of them runs
    transfer_ns    the part after the last rank arrived; waiting_ns: the rest; null if none was compared
    exposed_ns     the part of latency_ns not overlapped with computation
    algorithm_bandwidth, bus_bandwidth  message_bytes per second of transfer, and that times the collective's
                   factor (all-reduce 2(n-1)/n, all-gather, reduce-scatter, all-to-all (n-1)/n)
    lower_bound    the bandwidths are based on the entire latency, which includes waiting: they are at least that
    timing         device, host (no device work was recorded: the host's calls) or none
    """

    worker: str
    rank: int | None
    group: int
    group_label: str
    name: str
    collective: str
    backend: str | None
    calls: int
    bytes: int | None
    out_bytes: int | None
    message_bytes: int | None
    latency_ns: int | None
    transfer_ns: int | None
    waiting_ns: int | None
    exposed_ns: int | None
    algorithm_bandwidth: float | None
    bus_bandwidth: float | None
    lower_bound: bool
    timing: str


class GroupCollectiveRow(msgspec.Struct, frozen=True):
    """Operations of a process group that share a name: sums over its ranks.

    collectives  matched across ranks: what every rank does once counts once
    compared     of these, the ones that at least two ranks recorded alike
    mean_skew_ns, max_skew_ns  first to last arrival; null without two ranks on one clock
    """

    name: str
    collective: str
    collectives: int
    compared: int
    calls: int
    bytes: int | None
    message_bytes: int | None
    latency_ns: int | None
    transfer_ns: int | None
    waiting_ns: int | None
    exposed_ns: int | None
    mean_skew_ns: float | None
    max_skew_ns: int | None
    algorithm_bandwidth: float | None
    bus_bandwidth: float | None
    lower_bound: bool


class ProcessGroupRow(msgspec.Struct, frozen=True):
    """One process group: a name *and* its ranks, because one name serves several groups.

    id           names the group in rows and parameters
    label        its description or name, or what is known of it
    name         null: the traces don't record in which group they communicate
    ranks, size  null if unknown
    assumed      name and ranks aren't recorded with the operations; they follow from the job's description
    matched_by   sequence_number, order (n-th operation of the group), peers (n-th message from one rank to
                 another), or null with one rank
    workers      workers that communicate in it
    absent_ranks ranks of the group without a trace here
    """

    id: int
    label: str
    name: str | None
    description: str | None
    ranks: list[int] | None
    size: int | None
    assumed: bool
    backends: list[str]
    matched_by: str | None
    workers: list[str]
    absent_ranks: list[int]
    operations: list[GroupCollectiveRow]
    mismatches: int


class GroupFamily(msgspec.Struct, frozen=True):
    """Process groups that divide the job in one way; times are sums over all their ranks, the entire recording.

    label     their description or name, else their size and spacing
    groups    number of groups; complete: number of these of which every rank is compared
    size      ranks of the largest
    names     the collectives, most calls first, at most six; collectives: how many, matched across ranks
    slowest_group, slowest_ranks, slowest_waiting_ns  the group whose ranks wait most, and its ranks in short; null
              if nothing was compared
    """

    label: str
    groups: int
    complete: int
    size: int
    backends: list[str]
    names: list[str]
    collectives: int
    compared: int
    latency_ns: int | None
    transfer_ns: int | None
    waiting_ns: int | None
    exposed_ns: int | None
    slowest_group: int | None
    slowest_ranks: str | None
    slowest_waiting_ns: int | None


class MismatchValue(msgspec.Struct, frozen=True):
    """A value and who has it: `count` workers, of which the first 64 are listed."""

    value: str
    workers: list[str]
    count: int


class MismatchRow(msgspec.Struct, frozen=True):
    """Operations that should be one collective but differ between ranks; comparisons leave them out.

    collective  its id in `distributed/collective`
    what        name, size, dtype, or missing (`values`: the ranks that lack it in the middle of their recording)
    values      the first eight
    """

    group: int
    collective: int
    step: str | None
    what: str
    values: list[MismatchValue]
    text: Text
