"""Read a flight recorder's dump into what a diagnosis needs of it."""

from __future__ import annotations

import math
import re
from array import array
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from functools import lru_cache
from operator import attrgetter, itemgetter, sub
from typing import Any, BinaryIO, NamedTuple

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.ingest.flight_recorder.content import HINT, read_content
from torch_tb_profiler.ingest.flight_recorder.native.shorten import ShortenedDump, shorten
from torch_tb_profiler.ingest.runtime import without_gc
from torch_tb_profiler.model.flight_recorder import (
    GroupHistory,
    GroupMembers,
    Lane,
    RecordedCall,
    RecordedFrame,
    RecordedMessage,
    RecorderDump,
)

MAX_BYTES, MAX_ENTRIES = 256 * 2**20, 1_000_000
"""Largest dump that is read; a ring buffer of 2,000 entries takes about 0.4 MB."""

MAX_NUMBER_GAP = 1_000_000
"""Largest distance between the sequence numbers of one group in a dump; a larger one is damage."""

RECENT_CALLS = 2
"""Finished calls of each group that are kept with their stacks."""

MAX_FRAMES = 64
MAX_INPUTS = 1024
"""Frames and inputs of a call that are kept."""

SAME_ELEMENTS = frozenset(
    (
        "all_reduce", "all_reduce_barrier", "allreduce_coalesced", "all_gather", "_all_gather_base",
        "all_gather_into_tensor", "all_gather_single", "allgather_into_tensor_coalesced", "reduce_scatter",
        "_reduce_scatter_base", "reduce_scatter_single", "reduce_scatter_tensor_coalesced", "reduce", "broadcast",
    )
)  # fmt: skip
"""Operations whose inputs have as many elements on all ranks."""

_STATEFUL_BACKENDS = frozenset(("nccl", "rccl", "xccl", "hccl"))
"""Backends whose recorder updates `state`; in others `retired` may be the only sign that a call finished."""

_PEERS = lazy_regex(r"^(?P<operation>send|recv) (?P<own>\d{1,9})(?:->|<-)(?P<peer>\d{1,9})$")
_CODE_BYTES = array("I").itemsize
_NAME, _CREATED = itemgetter("profiling_name"), itemgetter("time_created_ns")
_CREATED_NS = attrgetter("created_ns")


def _record_id(entry: Mapping[str, Any]) -> int:
    return int(entry["record_id"])


def read_dump(stream: BinaryIO, rank: int) -> RecorderDump:
    """Read the dump of a rank. Raises TraceError, with the place, if it is too large, damaged, or hostile."""
    data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise TraceError(
            f"the dump is larger than {MAX_BYTES // 2**20} MiB", hint="set TORCH_FR_BUFFER_SIZE lower"
        )
    with without_gc():
        short = shorten(data)
        content = read_content(data) if short is None else {**short.top, "entries": short.entries}
        try:
            return _Dump(content, rank, short).build()
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
            raise TraceError(
                f"the dump has an entry that isn't one of a flight recorder ({type(error).__name__}: {error})",
                hint=HINT,
            ) from error


class _ProfilingName(NamedTuple):
    """What a profiling name says, worked out once per name.

    operation  without the backend, and without the peers of a message
    message    (direction, peer's rank within the group) of a send or receive
    p2p        it counts with the point-to-point calls, whatever the entry says
    equal      its inputs have as many elements on all ranks
    """

    backend: str
    operation: str
    message: tuple[str, int] | None
    p2p: bool
    equal: bool


def _parse_name(profiling_name: str) -> _ProfilingName:
    backend, colon, operation = profiling_name.partition(":")
    operation = operation or profiling_name
    match = _PEERS.match(operation)
    message = (match["operation"], int(match["peer"])) if match else None
    name = message[0] if message else operation
    return _ProfilingName(
        backend if colon else "", name, message, " " in profiling_name, operation in SAME_ELEMENTS
    )


class _Dump:
    """Builds the dump of one rank from plain values.

    A job has thousands of files with thousands of entries each, so little is done per entry: stacks and sizes are
    read only of the calls that are kept.
    """

    def __init__(self, content: Mapping[str, Any], rank: int, short: ShortenedDump | None = None) -> None:
        entries: list[dict[str, Any]] = content.get("entries") or []
        if len(entries) > MAX_ENTRIES:
            raise TraceError(f"the dump has more than {MAX_ENTRIES:,} entries", hint=HINT)
        self.entries = sorted(entries, key=_record_id)
        self.short = short
        self.rank = rank
        self.version = str(content.get("version") or "")
        self.members = {group.name: group for group in _read_groups(content.get("pg_config") or {})}
        self.status = content.get("pg_status") or {}
        self.dumped_ns = None if content.get("dumped_at_ns") is None else int(content["dumped_at_ns"])
        names = {name for name, _ in short.signatures} if short is not None else set(map(_NAME, self.entries))
        self.kinds = {name: _parse_name(name) for name in names}
        self.stateless = self._stateless_backends()
        self.lanes: dict[Lane, list[int]] = defaultdict(lambda: [0, 0])
        self.before: dict[Lane, tuple[int | None, int | None]] = {}
        self.history: dict[str, GroupHistory] = {}
        self.signatures: list[tuple[str, tuple[int, ...] | None]] = []

    def build(self) -> RecorderDump:
        self._name_default_group()
        calls = self._read_entries()
        pending, recent = self._split(calls)
        created = sorted(map(int, map(_CREATED, self.entries)))
        gap = max(map(sub, created[1:], created), default=0)
        last = created[-1] if created else None
        count, first = len(self.entries), int(self.entries[0]["record_id"]) if self.entries else 0
        if self.short is not None and self.short.count:
            count, first, last, gap = self.short.count, self.short.first, self.short.last_ns, self.short.gap_ns
        return RecorderDump(
            rank=self.rank,
            backend=self.kinds[self.entries[-1]["profiling_name"]].backend if self.entries else "",
            version=self.version,
            entries=count,
            lost=first > 0,
            members=self.members,
            pending=pending,
            recent=recent,
            history=self.history,
            lanes={lane: (counts[0], counts[1]) for lane, counts in self.lanes.items()},
            signatures=self.signatures,
            unrecorded=self._unrecorded(),
            longest_gap_ns=gap,
            last_call_ns=last,
            dumped_ns=self.dumped_ns,
        )

    def _stateless_backends(self) -> set[str]:
        """Return the backends whose entries never leave the state "scheduled", whatever becomes of the call."""
        stateful = {
            self.kinds[entry["profiling_name"]].backend
            for entry in self.entries
            if entry["state"] != "scheduled" or entry.get("time_discovered_completed_ns")
        }
        if self.short is not None and self.short.finished:
            stateful |= {kind.backend for kind in self.kinds.values()}
        return {kind.backend for kind in self.kinds.values()} - stateful - _STATEFUL_BACKENDS

    def _name_default_group(self) -> None:
        """Give the default group its name: Gloo's recorder describes it under an empty one."""
        unnamed = self.members.pop("", _NO_GROUP)
        if unnamed.ranks:
            name = next((entry["process_group"][0] for entry in self.entries if _is_default(entry)), None)
            if name is not None and not self.members.get(name, _NO_GROUP).ranks:
                self.members[name] = GroupMembers(name, "default_pg", unnamed.ranks)

    def _read_entries(self) -> dict[tuple[str, bool, int], list[dict[str, Any]]]:
        """Return the entries of each call, and keep a code for what each collective was.

        A call is (group, point-to-point, sequence number); the entries of a coalesced batch share one.
        """
        kinds, members, history = self.kinds, self.members, self.history
        codes: dict[tuple[str, str | None], int] = {}
        calls: dict[tuple[str, bool, int], list[dict[str, Any]]] = {}
        if self.short is not None:
            self._read_finished(self.short, codes)
        for entry in self.entries:
            name = entry["profiling_name"]
            kind = kinds[name]
            group = entry["process_group"][0]
            p2p = kind.p2p or bool(entry.get("is_p2p"))
            number = entry["p2p_seq_id" if p2p else "collective_seq_id"]
            call = group, p2p, number
            if call in calls:
                calls[call].append(entry)
            else:
                calls[call] = [entry]
            if p2p:
                if group not in members:
                    self._add_group(*entry["process_group"][:2])
                continue
            what = name, (str(entry.get("input_sizes")) if kind.equal else None)
            code = codes.get(what)
            if code is None:
                code = codes[what] = self._add_signature(kind, entry.get("input_sizes"))
            known = history.get(group)
            if known is None:
                self._add_group(*entry["process_group"][:2])
                known = history[group] = GroupHistory(number)
            if number == known.first + len(known.codes):
                known.codes.append(code)
            else:
                _place(known, group, number, code)
        return calls

    def _read_finished(self, short: ShortenedDump, codes: dict[tuple[str, str | None], int]) -> None:
        """Add the finished collectives that the native reader has left out."""
        numbers = iter(short.finished)
        of_signature: dict[int, int] = {}
        for place, number, signature in zip(numbers, numbers, numbers, strict=True):
            code = of_signature.get(signature)
            if code is None:
                name, sizes = short.signatures[signature]
                kind = self.kinds[name]
                what = name, (str(sizes) if kind.equal else None)
                if what not in codes:
                    codes[what] = self._add_signature(kind, sizes)
                code = of_signature[signature] = codes[what]
            group, description = short.groups[place][:2]
            known = self.history.get(group)
            if known is None:
                self._add_group(group, description)
                known = self.history[group] = GroupHistory(number)
            if number == known.first + len(known.codes):
                known.codes.append(code)
            else:
                _place(known, group, number, code)

    def _add_signature(self, kind: _ProfilingName, sizes: Any) -> int:
        self.signatures.append((kind.operation, _elements(sizes) if kind.equal else None))
        return len(self.signatures)

    def _add_group(self, group: str, description: Any) -> None:
        self.members.setdefault(group, GroupMembers(str(group), str(description), ()))

    def _split(
        self, calls: Mapping[tuple[str, bool, int], list[dict[str, Any]]]
    ) -> tuple[list[RecordedCall], list[RecordedCall]]:
        """Return the pending calls, and the last finished ones of each group."""
        pending: list[RecordedCall] = []
        finished: dict[str, deque[tuple[tuple[str, bool, int], tuple[RecordedMessage, ...]]]] = {}
        done = self._last_finished(calls)
        blocked: set[str] = set()
        for call, entries in calls.items():
            group, p2p, number = call
            is_done = self._is_done(entries[-1])  # the closing entry of a coalesced batch carries its state
            messages = self._messages(entries, is_done) if p2p else ()
            if not is_done:
                pending.append(self._call(entries, call, False, messages))
                if not p2p:
                    blocked.add(group)
                continue
            if not p2p and group not in blocked:
                done[group] = number
            if group not in finished:
                finished[group] = deque(maxlen=RECENT_CALLS)
            finished[group].append((call, messages))
        for group, number in done.items():
            self.history[group].done = number
        last = [each for listed in finished.values() for each in listed]
        recent = [self._call(calls[call], call, True, messages) for call, messages in last]
        return pending, sorted(recent, key=_CREATED_NS)

    def _last_finished(self, calls: Mapping[tuple[str, bool, int], list[dict[str, Any]]]) -> dict[str, int]:
        """Return the last finished collective that was left out and comes before any pending one, by group."""
        if self.short is None:
            return {}
        limits: dict[str, int] = {}
        for (group, p2p, number), entries in calls.items():
            if not p2p and not self._is_done(entries[-1]):
                limits.setdefault(group, number)
        done: dict[str, int] = {}
        numbers = iter(self.short.finished)
        for place, number, _ in zip(numbers, numbers, numbers, strict=True):
            group = self.short.groups[place][0]
            if group not in limits or number < limits[group]:
                done[group] = number
        return done

    def _messages(self, entries: Iterable[dict[str, Any]], done: bool) -> tuple[RecordedMessage, ...]:
        messages = []
        for entry in entries:
            message = self.kinds[entry["profiling_name"]].message
            if message is not None:
                operation, peer = message
                lane = entry["process_group"][0], operation, peer
                counts, after = self.lanes[lane], int(entry.get("collective_seq_id") or 0)
                first, second = self.before.get(lane, (None, None))
                skips = None if first is None or second is None else after - second < second - first
                self.before[lane] = second, after
                messages.append(RecordedMessage(operation, peer, counts[0], after, skips))
                counts[0] += 1
                counts[1] += not done
        return tuple(messages)

    def _is_done(self, entry: Mapping[str, Any]) -> bool:
        if entry["state"] == "completed":
            return True
        return bool(entry["retired"]) and self.kinds[entry["profiling_name"]].backend in self.stateless

    def _call(
        self,
        entries: list[dict[str, Any]],
        call: tuple[str, bool, int],
        done: bool,
        messages: tuple[RecordedMessage, ...],
    ) -> RecordedCall:
        last = entries[-1]
        kind = self.kinds[last["profiling_name"]]
        timeout = last.get("timeout_ms")
        return RecordedCall(
            group=call[0],
            p2p=call[1],
            number=call[2],
            operation=kind.operation,
            elements=_elements(last.get("input_sizes")) if kind.equal else None,
            dtypes=tuple(map(str, (last.get("input_dtypes") or [])[:MAX_INPUTS])),
            messages=messages,
            done=done,
            created_ns=int(entries[0]["time_created_ns"]),
            timeout_ns=int(timeout) * 1_000_000 if timeout else None,
            frames=tuple(
                RecordedFrame(str(frame["filename"]), int(frame["line"]), str(frame["name"]))
                for frame in (entries[0].get("frames") or last.get("frames") or [])[:MAX_FRAMES]
            ),
        )

    def _unrecorded(self) -> bool:
        """Return whether a call is pending that the recorder leaves out.

        Gloo counts sends and receives in `op_id` and in the status of the group, and records neither.
        """
        if any(kind.backend not in self.stateless for kind in self.kinds.values()):
            return False
        last: dict[str, int] = {}
        for entry in self.entries:
            identity, number = str(entry["pg_id"]), int(entry["op_id"])
            if number > last.get(identity, 0):
                last[identity] = number
        for identity, status in self.status.items():
            enqueued = int(status.get("last_enqueued_collective") or 0)
            completed = int(status.get("last_completed_collective") or 0)
            if enqueued > max(completed, last.get(str(identity), 0)):
                return True
        return False


_NO_GROUP = GroupMembers("", "", ())


def _is_default(entry: Mapping[str, Any]) -> bool:
    return bool(entry["process_group"][1] == "default_pg")


def _place(history: GroupHistory, group: str, number: int, code: int) -> None:
    """Put a collective that doesn't follow the one before at its number."""
    place = number - history.first
    if 0 <= place < len(history.codes):
        history.codes[place] = code  # the closing entry of a coalesced batch names the operation
    elif 0 < place < MAX_NUMBER_GAP:
        history.codes.extend(array("I", bytes(_CODE_BYTES * (place - len(history.codes)))))
        history.codes.append(code)
    else:
        raise ValueError(f"sequence number {number} after {history.last} in group {group!r}")


def _read_groups(config: Mapping[str, Any]) -> Iterable[GroupMembers]:
    for name, group in config.items():
        ranks = group.get("ranks") or ""
        numbers = _parse_ranks(ranks) if isinstance(ranks, str) else tuple(int(rank) for rank in ranks)
        yield GroupMembers(str(name), str(group.get("desc") or ""), numbers)


@lru_cache(maxsize=256)
def _parse_ranks(text: str) -> tuple[int, ...]:
    """Return the ranks of "[0, 1, 2]"."""
    return tuple(map(int, re.findall(r"\d{1,9}", text)))


def _elements(sizes: Any) -> tuple[int, ...]:
    return tuple(math.prod(shape) for shape in (sizes or [])[:MAX_INPUTS])
