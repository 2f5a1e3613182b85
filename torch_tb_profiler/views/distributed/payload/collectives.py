"""The table of collectives, and one of them."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from torch_tb_profiler.analyses.distributed.collectives import CollectiveSort
from torch_tb_profiler.view import Page
from torch_tb_profiler.views._shared.text import Text


class CollectivesParams(Page, frozen=True):
    """Which rows of the table of collectives, in which order.

    group  id of a process group, -1: all
    late   only those in which this worker arrived last
    mismatched  only those on which the ranks disagree
    """

    sort: CollectiveSort = "start"
    descending: bool = False
    group: int = -1
    name: str = ""
    step: str = ""
    late: str = ""
    mismatched: bool = False


class CollectiveInstance(msgspec.Struct, frozen=True):
    """One collective across ranks.

    id         names it in `distributed/collective`
    group_label  the description or name of the group
    sequence   its recorded sequence number, null if none
    start_ns, end_ns  job time of the first arrival and of the last end
    ranks      how many recorded it; size: how many the group has, null if unknown
    bytes      message size of one rank (the largest), null if not recorded
    latency_ns longest of the ranks; transfer_ns: the shortest, which all of them needed
    waiting_ns sum over the ranks of latency - transfer
    skew_ns    first to last arrival; null without two ranks on one clock
    late_worker, late_rank  who arrived last; null where the clocks' error is larger than the skew
    mismatch   what differs between the ranks, null if nothing: then it was not compared
    """

    id: int
    group: int
    group_label: str
    name: str
    sequence: int | None
    step: str | None
    start_ns: int | None
    end_ns: int | None
    ranks: int
    size: int | None
    dtype: str | None
    bytes: int | None
    latency_ns: int | None
    transfer_ns: int | None
    waiting_ns: int | None
    skew_ns: int | None
    late_worker: str | None
    late_rank: int | None
    algorithm_bandwidth: float | None
    bus_bandwidth: float | None
    lower_bound: bool
    mismatch: str | None


class Collectives(msgspec.Struct, frozen=True):
    """`total` rows remain after the filters, of which `rows` are a page."""

    rows: list[CollectiveInstance]
    total: int
    first: int
    reasons: Mapping[str, Text]


class CollectiveParams(msgspec.Struct, frozen=True):
    """`collective`: the id of a CollectiveInstance."""

    collective: int


class NamedTime(msgspec.Struct, frozen=True):
    """Time by name. short_name: of a kernel as the rank's Kernels view has it, of all else the name."""

    name: str
    short_name: str
    ns: int


class Before(msgspec.Struct, frozen=True):
    """What the rank did between the group's previous collective and this one.

    window_ns   that time; `categories` (the overview's eight, in order) sum to it
    host        operators and annotations by self time, largest first; kernels: device work likewise
    """

    window_ns: int
    categories: list[NamedTime]
    host: list[NamedTime]
    kernels: list[NamedTime]


class Participant(msgspec.Struct, frozen=True):
    """A rank's part in one collective.

    event     row of its trace: the kernel, or the host's call where no kernel is recorded
    call      row of its trace: the host's call that launched it, null if none is recorded
    trace_start_ns  when it began, in the rank's own trace; start_ns, end_ns: job time
    after_first_ns  after the first arrival
    before    null for the first of the group in the recording
    """

    worker: str
    rank: int | None
    span: str
    event: int
    call: int | None
    name: str
    dtype: str | None
    bytes: int | None
    out_bytes: int | None
    trace_start_ns: int | None
    start_ns: int | None
    end_ns: int | None
    latency_ns: int | None
    transfer_ns: int | None
    waiting_ns: int | None
    exposed_ns: int | None
    after_first_ns: int | None
    before: Before | None


class Collective(msgspec.Struct, frozen=True):
    """One collective across the ranks, in order of rank; `median_worker` arrived in the middle."""

    instance: CollectiveInstance
    participants: list[Participant]
    median_worker: str | None
    reasons: Mapping[str, Text]
