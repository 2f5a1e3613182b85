"""The verdict: who holds a job up, from the graph of waits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from torch_tb_profiler.analyses.hangs.groups import JobGroup, JobGroups
from torch_tb_profiler.analyses.hangs.timing import DumpTiming, find_timing
from torch_tb_profiler.analyses.hangs.waits import CollectiveState, Signature, WaitGraph
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.model.flight_recorder import JobDumps, RecordedCall, RecordedFrame, RecorderDump

VerdictKind = Literal[
    "finished", "running", "not_joined", "mismatch_op", "mismatch_size", "mismatch_order", "no_dump",
    "unreadable_dump", "p2p_cycle", "group_cycle", "unmatched_p2p", "all_joined", "unknown",
]  # fmt: skip

Reason = Literal[
    "", "host", "skipped_or_wrong", "no_majority", "no_file", "unreadable", "below", "lost_message", "slow",
    "unwritten_time", "unrecorded_p2p", "unknown_members", "unknown_peer", "no_dumps", "some_unread",
    "overwritten", "lost_or_skipped", "order_or_skipped",
]  # fmt: skip
"""What the dumps leave open."""

_LIBRARY = lazy_regex(
    r"[/\\](?:site|dist)-packages[/\\]|[/\\]lib(?:64)?[/\\]python\d[^/\\]*[/\\]|^<(?:frozen|string>)"
)

_PREFERENCE = ("not_joined", "cycle", "no_dump", "unreadable_dump", "all_joined", "unmapped")
"""Which of several ends of the waits is the verdict: the surest first."""


def is_library(frame: RecordedFrame) -> bool:
    """Return whether a frame belongs to an installed package or the standard library."""
    return _LIBRARY.search(frame.file) is not None


def own_line(frames: Iterable[RecordedFrame]) -> str | None:
    """Return "file:line" of the innermost frame of the user's code."""
    return next((f"{frame.file}:{frame.line}" for frame in frames if not is_library(frame)), None)


@dataclass(frozen=True)
class CulpritWait:
    """A call in which a culprit is waited for, by its first waiter."""

    group: JobGroup
    call: RecordedCall


@dataclass(frozen=True)
class HangVerdict:
    """Who holds the job up; see `docs/views/hangs.md` for the kinds.

    culprits      global ranks; of a cycle, its members
    groups        groups in which the culprits are waited for, the first first; several of a cycle across groups
    call          the call of the first direct waiter, None if nobody waits
    culprit_call  what the culprits called instead, of a mismatch
    waiting       ranks held up, directly or in turn, whose dump is readable
    unseen        ranks held up, too, without a readable dump
    direct        ranks that wait for the culprits themselves
    others        further calls in which a culprit is waited for directly
    votes         what the members called, of a mismatch: (signature, ranks), the majority first
    reason        what the dumps leave open
    """

    kind: VerdictKind
    culprits: tuple[int, ...] = ()
    groups: tuple[JobGroup, ...] = ()
    call: RecordedCall | None = None
    culprit_call: RecordedCall | None = None
    waiting: tuple[int, ...] = ()
    unseen: tuple[int, ...] = ()
    direct: tuple[int, ...] = ()
    others: tuple[CulpritWait, ...] = ()
    votes: tuple[tuple[Signature, tuple[int, ...]], ...] = ()
    reason: Reason = ""

    @property
    def line(self) -> str | None:
        """Return where the culprit's own call is, of a mismatch; else where the first waiter's is."""
        call = self.culprit_call or self.call
        return own_line(call.frames) if call is not None else None


@dataclass(frozen=True)
class HangDiagnosis:
    """The verdict with everything it was derived from."""

    verdict: HangVerdict
    timing: DumpTiming
    graph: WaitGraph
    groups: JobGroups
    dumps: dict[int, RecorderDump]


def diagnose(job: JobDumps) -> HangDiagnosis:
    """Find who holds a job up."""
    dumps = {file.rank: file.dump for file in job.files if file.dump is not None}
    groups = JobGroups(dumps, [file.rank for file in job.files])
    graph = WaitGraph(dumps, groups)
    timing = find_timing(job, dumps, groups)
    unreadable = {file.rank for file in job.files if file.dump is None}
    return HangDiagnosis(_Judge(graph, unreadable, timing).verdict(), timing, graph, groups, dumps)


class _Judge:
    def __init__(self, graph: WaitGraph, unreadable: set[int], timing: DumpTiming) -> None:
        self.graph = graph
        self.dumps = graph.dumps
        self.unreadable = unreadable
        self.timing = timing

    def verdict(self) -> HangVerdict:
        if not self.dumps:
            return HangVerdict("unknown", reason="no_dumps")
        if not any(dump.pending for dump in self.dumps.values()):
            unread = len(self.dumps) < len(self.graph.groups.ranks)
            return HangVerdict("finished", reason="some_unread" if unread else "")
        if self.timing.progress == "running":
            return HangVerdict("running")
        mismatches = [state for state in self.graph.collectives if state.mismatch]
        found = (
            self._judge_mismatch(min(mismatches, key=lambda state: state.created_ns))
            if mismatches
            else self._judge_root()
        )
        found = replace(found, unseen=self._find_unseen(found))
        if self.timing.progress == "slow" and not found.kind.startswith("mismatch"):
            return replace(found, kind="unknown", culprits=(), direct=(), reason="slow")
        if self.timing.progress == "unknown" and found.kind != "unknown":
            return found if found.kind.startswith("mismatch") else replace(found, reason="unwritten_time")
        return found

    def _find_unseen(self, found: HangVerdict) -> tuple[int, ...]:
        """Return the ranks without a readable dump in a group that a waiting rank waits in."""
        held_up = {*found.waiting, *found.culprits}
        groups = {state.group for state in self.graph.collectives if held_up & state.waiters.keys()}
        groups |= {wait.group for wait in self.graph.peer_waits if wait.rank in held_up}
        ranks = {rank for group in groups for rank in group.ranks}
        return tuple(sorted(ranks - self.dumps.keys() - set(found.culprits)))

    # ---- mismatches -----------------------------------------------------------------------------------

    def _judge_mismatch(self, state: CollectiveState) -> HangVerdict:
        """Return the verdict on a collective whose members called different things: the minority did it."""
        sides = sorted(state.votes.items(), key=lambda side: -len(side[1]))
        (majority, most), (odd, _) = sides[0], sides[1]
        tie = len(sides[1][1]) == len(most)
        culprits = {rank for _, ranks in sides[0 if tie else 1 :] for rank in ranks}
        call = next((state.waiters[rank] for rank in most if rank in state.waiters), None)
        call = call or min(state.waiters.values(), key=lambda waiter: waiter.created_ns)
        odd_call = next((self._call(rank, state) for rank in sides[1][1] if self._call(rank, state)), None)
        kind: VerdictKind = "mismatch_size"
        reason: Reason = "no_majority" if tie else ""
        if majority[0] != odd[0]:
            swapped = self._is_swapped(state, most[0], sides[1][1][0])
            kind = "mismatch_order" if swapped else "mismatch_op"
            if not swapped and not tie:
                reason = "overwritten" if any(self.dumps[rank].lost for rank in culprits) else "skipped_or_wrong"
        self.graph.edges[state] += culprits
        waiting = {*self.graph.reaching(culprits), *state.waiters} - (set() if tie else culprits)
        direct = set(state.waiters) - (set() if tie else culprits)
        return HangVerdict(
            kind,
            tuple(sorted(culprits)),
            (state.group,),
            call,
            odd_call,
            tuple(sorted(waiting & self.dumps.keys())),
            direct=tuple(sorted(direct)),
            votes=tuple((signature, tuple(ranks)) for signature, ranks in sides),
            reason=reason,
        )

    def _call(self, rank: int, state: CollectiveState) -> RecordedCall | None:
        dump = self.dumps[rank]
        calls = (*dump.pending, *dump.recent)
        return next((call for call in calls if call.key == state.key), None)

    def _is_swapped(self, state: CollectiveState, majority: int, odd: int) -> bool:
        """Return whether two ranks made the same calls in another order, and agree on what follows.

        A rank that leaves a call out of a repeating pattern has the same calls at first, but not after them.
        """
        group, first = state.key.group, state.key.number
        a, b = self.dumps[majority], self.dumps[odd]
        last = min(a.last_number(group), b.last_number(group))
        sides: tuple[list[str], list[str]] = ([], [])
        for number in range(first, min(last, first + MAX_SWAPPED) + 1):
            key = state.key._replace(number=number)
            signatures = a.signature(key), b.signature(key)
            if signatures[0] is None or signatures[1] is None:
                return False
            sides[0].append(signatures[0][0])
            sides[1].append(signatures[1][0])
        for count in range(2, len(sides[0]) + 1):
            if sorted(sides[0][:count]) == sorted(sides[1][:count]):
                return sides[0][count:] == sides[1][count:]
        return False

    # ---- ends of the waits ----------------------------------------------------------------------------

    def _judge_root(self) -> HangVerdict:
        ends: dict[str, list[list[int | CollectiveState]]] = {name: [] for name in _PREFERENCE}
        for component in self.graph.terminal_components():
            ends[self._classify_end(component)].append(component)
        kind = next(name for name in _PREFERENCE if ends[name])
        if kind == "all_joined":
            return self._judge_joined_call(ends[kind])
        if kind == "unmapped":
            waits = [wait for wait in self.graph.peer_waits if wait.unmapped]
            first = min(waits, key=lambda wait: wait.call.created_ns)
            return HangVerdict("unknown", (), (first.group,), first.call, reason="unknown_peer")
        if kind == "cycle":
            cycles = [[node for node in end if isinstance(node, int)] for end in ends[kind]]
            return self._judge_cycle(min(cycles, key=self._find_first_created))
        culprits = {node for end in ends[kind] for node in end if isinstance(node, int)}
        if kind == "not_joined":
            idle = {rank for rank in culprits if not self.dumps[rank].unrecorded}
            if not idle:
                return replace(
                    self._blame("unknown", culprits, "unrecorded_p2p"), culprits=(), direct=(), others=()
                )
            return self._blame("not_joined", idle, "host")
        if kind == "no_dump":
            return self._blame("no_dump", culprits, "no_file")
        return self._blame("unreadable_dump", culprits, "unreadable")

    def _classify_end(self, component: Sequence[int | CollectiveState]) -> str:
        """Return what kind of end a terminal component is; see `_PREFERENCE`."""
        ranks = [node for node in component if isinstance(node, int)]
        if not ranks:
            return "all_joined"
        if len(component) > 1:
            return "cycle"
        rank = ranks[0]
        if rank in self.dumps:
            if not self.dumps[rank].pending:
                return "not_joined"
            unmapped = any(wait.unmapped for wait in self.graph.peer_waits if wait.rank == rank)
            return "unmapped" if unmapped else "all_joined"
        return "unreadable_dump" if rank in self.unreadable else "no_dump"

    def _find_waits(self, culprits: set[int]) -> list[tuple[int, CulpritWait]]:
        """Return (rank, call) of everyone who waits for one of these directly, the first calls first."""
        waits = [
            (rank, CulpritWait(state.group, call))
            for state in self.graph.collectives
            if culprits & {*state.missing, *state.unseen, *state.behind}
            for rank, call in state.waiters.items()
        ]
        waits += [
            (wait.rank, CulpritWait(wait.group, wait.call))
            for wait in self.graph.peer_waits
            if culprits & {*wait.peers}
        ]
        return sorted(waits, key=lambda each: (each[1].call.created_ns, each[0]))

    def _find_first_created(self, ranks: Sequence[int]) -> int:
        return min(wait.call.created_ns for _, wait in self._find_waits(set(ranks)))

    def _blame(self, kind: VerdictKind, culprits: set[int], reason: Reason) -> HangVerdict:
        waits = self._find_waits(culprits)
        first = waits[0][1]
        others: dict[tuple[JobGroup, bool, str], CulpritWait] = {}
        for _, wait in waits[1:]:
            if (wait.group, wait.call.key, wait.call.operation) != (
                first.group,
                first.call.key,
                first.call.operation,
            ):
                key = wait.group, wait.call.p2p, f"{wait.call.operation} {wait.call.number}"
                others.setdefault(key, wait)
        waiting = (self.graph.reaching(culprits) - culprits) & self.dumps.keys()
        return HangVerdict(
            kind,
            tuple(sorted(culprits)),
            (first.group,),
            first.call,
            waiting=tuple(sorted(waiting)),
            direct=tuple(sorted({rank for rank, _ in waits} - culprits)),
            others=tuple(others.values()),
            reason=reason,
        )

    def _judge_cycle(self, ranks: list[int]) -> HangVerdict:
        """Return the verdict on ranks that wait for each other."""
        members = set(ranks)
        inside = [(rank, wait) for rank, wait in self._find_waits(members) if rank in members]
        of_rank = dict(reversed(inside))
        groups = tuple(dict.fromkeys(of_rank[rank].group for rank in sorted(of_rank)))
        first = inside[0][1]
        waiting = tuple(sorted((self.graph.reaching(members) | members) & self.dumps.keys()))
        messages = [(rank, wait) for rank, wait in inside if wait.call.p2p]
        if messages and len(messages) < len(inside) and len(groups) == 1:
            # One waits for a message, the other side has gone on to a collective.
            rank, wait = messages[0]
            peers = next(
                each.peers for each in self.graph.peer_waits if each.rank == rank and each.call is wait.call
            )
            culprits = members & set(peers)
            if not self._is_expected(rank, wait.call, culprits):
                return HangVerdict(
                    "unknown", (), groups, wait.call, waiting=waiting, direct=(rank,), reason="lost_or_skipped"
                )
            return HangVerdict(
                "unmatched_p2p",
                tuple(sorted(culprits)),
                groups,
                wait.call,
                of_rank[min(culprits)].call if culprits & of_rank.keys() else None,
                tuple(rank for rank in waiting if rank not in culprits),
                direct=(rank,),
                reason="lost_message",
            )
        kind: VerdictKind = "p2p_cycle" if len(messages) == len(inside) and len(groups) == 1 else "group_cycle"
        reason: Reason = "" if kind == "p2p_cycle" else "order_or_skipped"
        direct = tuple(sorted(members))
        return HangVerdict(kind, direct, groups, first.call, waiting=waiting, direct=direct, reason=reason)

    def _is_expected(self, rank: int, call: RecordedCall, peers: set[int]) -> bool:
        """Return whether a rank is in the rhythm of its earlier messages with these peers.

        A rank that leaves out a collective arrives early at its next message, whose other side still waits in that
        collective: this looks as if the other side had left out the message. Two earlier messages make a rhythm.
        """
        group = self.graph.groups.find(rank, call.group)
        messages = [each for each in call.messages if group.ranks[each.peer] in peers]
        return all(message.skips is False for message in messages)

    def _judge_joined_call(self, ends: list[list[int | CollectiveState]]) -> HangVerdict:
        """Return the verdict on a call that everyone is in."""
        states = [node for end in ends for node in end if isinstance(node, CollectiveState)]
        waits: list[tuple[int, JobGroup, RecordedCall]] = [
            (rank, state.group, call) for state in states for rank, call in state.waiters.items()
        ]
        waits += [
            (each.rank, each.group, each.call)
            for each in self.graph.peer_waits
            if not each.peers and not each.unmapped
        ]
        _, group, call = min(waits, key=lambda wait: wait[2].created_ns)
        direct = {rank for rank, its_group, its_call in waits if its_group is group and its_call.key == call.key}
        waiting = tuple(sorted(rank for rank, dump in self.dumps.items() if dump.pending))
        if not group.known:
            return HangVerdict("unknown", (), (group,), call, waiting=waiting, reason="unknown_members")
        direct_ranks = tuple(sorted(direct))
        return HangVerdict("all_joined", (), (group,), call, waiting=waiting, direct=direct_ranks, reason="below")


MAX_SWAPPED = 8
"""Most calls that a rank may have made in another order."""
