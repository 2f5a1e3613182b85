"""Who waits for whom: the frontier of each rank, and a graph of ranks and calls.

The frontier of a rank is the first pending call of each group, collectives and point-to-point calls apart. A rank
waits for a collective; the collective waits for the members that are not in it. A send or receive waits for the
other side, unless that has posted the counterpart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from torch_tb_profiler.analyses.hangs.groups import JobGroup, JobGroups
from torch_tb_profiler.model.flight_recorder import CallKey, RecordedCall, RecordedMessage, RecorderDump

Signature = tuple[str, tuple[int, ...] | None]


@dataclass(eq=False)
class CollectiveState:
    """A collective at the frontier of one rank or more.

    waiters  ranks whose first pending call it is -> that call
    missing  members whose dump shows that they did not call it
    behind   members that called it, but are still in an earlier call of the group
    unseen   members without a readable dump
    votes    what the members called -> by whom
    """

    group: JobGroup
    key: CallKey
    waiters: dict[int, RecordedCall] = field(default_factory=dict)
    missing: list[int] = field(default_factory=list)
    behind: list[int] = field(default_factory=list)
    unseen: list[int] = field(default_factory=list)
    votes: dict[Signature, list[int]] = field(default_factory=dict)

    @property
    def created_ns(self) -> int:
        return min(call.created_ns for call in self.waiters.values())

    @property
    def mismatch(self) -> bool:
        return len(self.votes) > 1


@dataclass(frozen=True)
class PeerWait:
    """A point-to-point call at the frontier of a rank, and the peers that haven't posted the counterpart.

    unmapped  the dumps don't say which rank the other side is
    """

    rank: int
    call: RecordedCall
    group: JobGroup
    peers: tuple[int, ...]
    unmapped: bool = False


class WaitGraph:
    """The frontier of a job as a graph.

    Nodes are ranks (int) and collectives (`CollectiveState`).
    """

    def __init__(self, dumps: Mapping[int, RecorderDump], groups: JobGroups) -> None:
        self.dumps = dumps
        self.groups = groups
        self.collectives: list[CollectiveState] = []
        self.peer_waits: list[PeerWait] = []
        self._first_pending: dict[tuple[int, JobGroup], int] = {}
        self._find_frontier()
        self.edges: dict[int | CollectiveState, list[int | CollectiveState]] = defaultdict(list)
        for state in self.collectives:
            self._classify_members(state)
            self.edges[state] += [*state.missing, *state.unseen, *state.behind]
            for rank in state.waiters:
                self.edges[rank].append(state)
        for wait in self.peer_waits:
            self.edges[wait.rank] += wait.peers

    def _find_frontier(self) -> None:
        states: dict[tuple[JobGroup, int], CollectiveState] = {}
        for rank, dump in self.dumps.items():
            waits: dict[str, PeerWait] = {}
            for call in dump.pending:
                group = self.groups.find(rank, call.group)
                if call.p2p:
                    if call.group not in waits or not (waits[call.group].peers or waits[call.group].unmapped):
                        waits[call.group] = self._find_missing_peers(rank, dump, call, group)
                elif (rank, group) not in self._first_pending:
                    self._first_pending[rank, group] = call.number
                    place = group, call.number
                    if place not in states:
                        states[place] = CollectiveState(group, call.key)
                    states[place].waiters[rank] = call
            self.peer_waits += waits.values()
        self.collectives = [*states.values()]

    def _classify_members(self, state: CollectiveState) -> None:
        """Note which members of a collective are missing, behind or unseen, and what the others called."""
        number, votes = state.key.number, defaultdict(list)
        for rank in state.group.ranks:
            dump = self.dumps.get(rank)
            if dump is None:
                state.unseen.append(rank)
                continue
            if dump.last_number(state.key.group) < number:
                state.missing.append(rank)
                continue
            signature = dump.signature(state.key)
            if signature is not None:
                votes[signature].append(rank)
            if self._first_pending.get((rank, state.group), number) < number:
                state.behind.append(rank)
        state.votes = dict(votes)

    def _find_missing_peers(self, rank: int, dump: RecorderDump, call: RecordedCall, group: JobGroup) -> PeerWait:
        """Return which peers of a point-to-point call haven't posted the counterpart."""
        peers: list[int] = []
        for message in call.messages:
            if not group.known or message.peer >= len(group.ranks) or rank not in group.positions:
                return PeerWait(rank, call, group, tuple(peers), unmapped=True)
            peer = group.ranks[message.peer]
            if peer not in self.dumps or not self._is_posted(rank, dump, call, message, group):
                peers.append(peer)
        return PeerWait(rank, call, group, tuple(dict.fromkeys(peers)))

    def _is_posted(
        self, rank: int, dump: RecorderDump, call: RecordedCall, message: RecordedMessage, group: JobGroup
    ) -> bool:
        """Return whether the other side has called the counterpart: the k-th receive belongs to the k-th send."""
        peer = self.dumps[group.ranks[message.peer]]
        opposite = "recv" if message.operation == "send" else "send"
        total, pending = dump.lanes[call.group, message.operation, message.peer]
        posted, posted_pending = peer.lanes.get((call.group, opposite, group.positions[rank]), (0, 0))
        if dump.lost or peer.lost:  # counts are lost: the first pending ones belong together
            return message.number - (total - pending) < posted_pending
        return message.number < posted

    # ---- the graph ------------------------------------------------------------------------------------

    def reaching(self, targets: set[int]) -> set[int]:
        """Return the ranks that wait for one of these, directly or in turn."""
        sources: dict[int | CollectiveState, list[int | CollectiveState]] = defaultdict(list)
        for node, successors in self.edges.items():
            for successor in successors:
                sources[successor].append(node)
        found: set[int | CollectiveState] = set()
        stack: list[int | CollectiveState] = [*targets]
        while stack:
            for node in sources[stack.pop()]:
                if node not in found:
                    found.add(node)
                    stack.append(node)
        return {node for node in found if isinstance(node, int)}

    def terminal_components(self) -> list[list[int | CollectiveState]]:
        """Return the strongly connected components that no edge leaves (Tarjan's algorithm, without recursion)."""
        index: dict[int | CollectiveState, int] = {}
        low: dict[int | CollectiveState, int] = {}
        stack: list[int | CollectiveState] = []
        component: dict[int | CollectiveState, int] = {}
        components: list[list[int | CollectiveState]] = []
        for root in list(self.edges):
            if root in index:
                continue
            index[root] = low[root] = len(index)
            stack.append(root)
            path = [(root, iter(self.edges.get(root, ())))]
            while path:
                node, successors = path[-1]
                for successor in successors:
                    if successor not in index:
                        index[successor] = low[successor] = len(index)
                        stack.append(successor)
                        path.append((successor, iter(self.edges.get(successor, ()))))
                        break
                    if successor not in component:
                        low[node] = min(low[node], index[successor])
                else:
                    path.pop()
                    if path:
                        low[path[-1][0]] = min(low[path[-1][0]], low[node])
                    if low[node] == index[node]:
                        members = []
                        while True:
                            member = stack.pop()
                            component[member] = len(components)
                            members.append(member)
                            if member is node:
                                break
                        components.append(members)
        leaving = {
            component[node]
            for node, successors in self.edges.items()
            for successor in successors
            if component[successor] != component[node]
        }
        return [members for number, members in enumerate(components) if number not in leaving]
