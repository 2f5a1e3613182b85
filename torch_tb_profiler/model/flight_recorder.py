"""What a flight recorder of PyTorch's distributed library says about one rank.

A recorder is a ring of the last calls of a process: each entry is a collective, a send, or a receive, with its
process group, its number in it, sizes, state, and Python stack. `RecorderDump` holds what a diagnosis needs of one
such file: the calls that didn't finish, the last ones that did, and one code per earlier call.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Literal, NamedTuple


class RecordedFrame(NamedTuple):
    """A Python frame; the innermost of a stack comes first."""

    file: str
    line: int
    function: str


class GroupMembers(NamedTuple):
    """A process group as one process describes it.

    ranks  global ranks in the order of their ranks within the group; empty if the recorder doesn't name them
    """

    name: str
    description: str
    ranks: tuple[int, ...]


class RecordedMessage(NamedTuple):
    """A send or receive inside a call.

    peer    the other side's rank within the group
    number  how many of its kind (same direction, same peer) came before it in the dump, from 0
    after   collectives that this rank had called in the group before it
    skips   it came after fewer collectives than the two before it suggest; None if there are no two
    """

    operation: str
    peer: int
    number: int
    after: int = 0
    skips: bool | None = None


Lane = tuple[str, str, int]
"""Sends to a peer, or receives from it: (group, "send" or "recv", the peer's rank within the group)."""


class RecordedCall(NamedTuple):
    """A collective, a point-to-point call, or a coalesced batch, as one rank recorded it.

    group         name of its process group
    p2p           True for sends, receives, and batches of them
    number        its sequence number in the group: collectives and point-to-point calls count apart
    operation     its name without backend and peers
    elements      elements of each input; None if they may differ between ranks
    messages      its sends and receives
    created_ns    epoch time of the call on the host
    timeout_ns    how long it may take, None if unknown
    """

    group: str
    p2p: bool
    number: int
    operation: str
    elements: tuple[int, ...] | None
    dtypes: tuple[str, ...]
    messages: tuple[RecordedMessage, ...]
    done: bool
    created_ns: int
    timeout_ns: int | None
    frames: tuple[RecordedFrame, ...]

    @property
    def key(self) -> CallKey:
        return CallKey(self.group, self.p2p, self.number)

    @property
    def signature(self) -> tuple[str, tuple[int, ...] | None]:
        """Return what must be the same on all ranks of a collective."""
        return self.operation, self.elements


class CallKey(NamedTuple):
    """The identity of a collective; of a point-to-point call it identifies only this rank's side."""

    group: str
    p2p: bool
    number: int


@dataclass
class GroupHistory:
    """The collectives of one rank in one group.

    first  number of the first one in the dump
    codes  index into `RecorderDump.signatures` plus 1 for each number from `first` on; 0 where there is none
    done   number of the last one before the first that is pending; 0 if there is none
    """

    first: int
    codes: array[int] = field(default_factory=lambda: array("I"))
    done: int = 0

    @property
    def last(self) -> int:
        """Return the number of the last call that this rank made."""
        return self.first + len(self.codes) - 1


@dataclass
class RecorderDump:
    """One rank's flight recorder.

    backend      library of the last calls ("nccl", "gloo"), "" without any
    entries      number of entries in the file
    lost         the ring has overwritten older entries
    members      the groups that the process knows, by name
    pending      calls that didn't finish, in order
    recent       the last finished ones of each group, in order
    history      group -> its collectives
    lanes        sends and receives in the dump -> (all, pending)
    signatures   what the codes of `history` stand for: (operation, elements)
    unrecorded   a call is pending that the recorder leaves out: Gloo's sends and receives
    longest_gap_ns  longest time between two consecutive calls
    last_call_ns    epoch time of the last call, None without any
    dumped_ns       epoch time of the dump, where its writer noted it
    """

    rank: int
    backend: str
    version: str
    entries: int
    lost: bool
    members: dict[str, GroupMembers]
    pending: list[RecordedCall]
    recent: list[RecordedCall]
    history: dict[str, GroupHistory]
    lanes: dict[Lane, tuple[int, int]]
    signatures: list[tuple[str, tuple[int, ...] | None]]
    unrecorded: bool
    longest_gap_ns: int
    last_call_ns: int | None
    dumped_ns: int | None = None

    def signature(self, key: CallKey) -> tuple[str, tuple[int, ...] | None] | None:
        """Return what this rank called as a collective, or None if it isn't in the dump."""
        history = self.history.get(key.group)
        if history is None or key.p2p or not history.first <= key.number <= history.last:
            return None
        code = history.codes[key.number - history.first]
        return self.signatures[code - 1] if code else None

    def last_number(self, group: str) -> int:
        """Return the number of the last collective that this rank called in a group, 0 without any."""
        history = self.history.get(group)
        return history.last if history is not None else 0


@dataclass(frozen=True)
class StackDump:
    """Where the threads of a process were, as py-spy or faulthandler wrote it.

    source   "py-spy" or "faulthandler"
    threads  stacks by thread, the main thread first
    """

    source: Literal["py-spy", "faulthandler"]
    threads: tuple[tuple[RecordedFrame, ...], ...]


class WatchdogTimeout(NamedTuple):
    """A call that NCCL's watchdog gave up, as it says in the log of the job.

    rank       global rank, None where the version doesn't say
    position   rank within the group
    group      name of the process group, None where the version doesn't say
    number     sequence number of the call in its group
    operation  as the watchdog names it: "ALLREDUCE"
    ran_ns     how long it had run by then
    """

    rank: int | None
    position: int
    group: str | None
    number: int
    operation: str
    ran_ns: int


@dataclass(frozen=True)
class RankFile:
    """One rank's dump file.

    name        path of the file in its run
    dump        what it holds, None if it can't be read
    problem     why it can't be read
    written_ns  modification time of the file (epoch), None if the storage doesn't say
    """

    rank: int
    name: str
    dump: RecorderDump | None
    problem: str | None = None
    written_ns: int | None = None


@dataclass(frozen=True)
class JobDumps:
    """The dumps of one job.

    files    the latest dump of each rank
    earlier  an earlier dump of the same ranks, empty if there is only one
    stacks   rank -> where the process was
    problems sentences about stacks and logs that can't be read
    timeouts what the watchdogs of the ranks gave up
    """

    files: tuple[RankFile, ...]
    earlier: tuple[RankFile, ...] = ()
    stacks: dict[int, StackDump] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    timeouts: tuple[WatchdogTimeout, ...] = ()
