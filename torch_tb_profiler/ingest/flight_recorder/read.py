"""Read a flight recorder's dump into what a diagnosis needs of it."""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, BinaryIO

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest.flight_recorder.content import HINT, read_content
from torch_tb_profiler.ingest.runtime import without_gc
from torch_tb_profiler.model.flight_recorder import (
    GroupHistory,
    GroupMembers,
    Lane,
    Message,
    RecordedCall,
    RecorderDump,
    StackFrame,
)

MAX_BYTES = 256 * 2**20
MAX_ENTRIES = 1_000_000
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

_PEERS = re.compile(r"^(?P<operation>send|recv) (?P<own>\d{1,9})(?:->|<-)(?P<peer>\d{1,9})$")
_CODE_BYTES = array("I").itemsize


def read_dump(stream: BinaryIO, rank: int) -> RecorderDump:
    """Read the dump of a rank. Raises TraceError, with the place, if it is too large, damaged, or hostile."""
    data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise TraceError(
            f"the dump is larger than {MAX_BYTES // 2**20} MiB", hint="set TORCH_FR_BUFFER_SIZE lower"
        )
    with without_gc():
        content = read_content(data)
        try:
            return _Dump(content, rank).build()
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
            raise TraceError(
                f"the dump has an entry that isn't one of a flight recorder ({type(error).__name__}: {error})",
                hint=HINT,
            ) from error


class _Dump:
    """Builds the dump of one rank from plain values."""

    def __init__(self, content: Mapping[str, Any], rank: int) -> None:
        entries: list[dict[str, Any]] = content.get("entries") or []
        if len(entries) > MAX_ENTRIES:
            raise TraceError(f"the dump has more than {MAX_ENTRIES:,} entries", hint=HINT)
        self.entries = sorted(entries, key=lambda entry: int(entry["record_id"]))
        self.rank = rank
        self.version = str(content.get("version") or "")
        self.members = {group.name: group for group in _read_groups(content.get("pg_config") or {})}
        self.status = content.get("pg_status") or {}
        self.stateless = _stateless_backends(self.entries)
        self.lanes: dict[Lane, list[int]] = defaultdict(lambda: [0, 0])

    def build(self) -> RecorderDump:
        history, signatures = self._histories()
        pending, recent = self._split(history)
        name = next((entry["process_group"][0] for entry in self.entries if _is_default(entry)), None)
        if name is not None and "" in self.members and not self.members.get(name, _NO_GROUP).ranks:
            # Gloo's recorder describes the default group under an empty name.
            self.members[name] = GroupMembers(name, "default_pg", self.members[""].ranks)
        self.members.pop("", None)
        for entry in self.entries:
            group, description = entry["process_group"][:2]
            self.members.setdefault(group, GroupMembers(str(group), str(description), ()))
        created = [int(entry["time_created_ns"]) for entry in self.entries]
        ordered = sorted(created)
        return RecorderDump(
            rank=self.rank,
            backend=_backend(self.entries[-1]) if self.entries else "",
            version=self.version,
            entries=len(self.entries),
            lost=bool(self.entries) and int(self.entries[0]["record_id"]) > 0,
            members=self.members,
            pending=pending,
            recent=recent,
            history=history,
            lanes={lane: (counts[0], counts[1]) for lane, counts in self.lanes.items()},
            signatures=signatures,
            unrecorded=self._unrecorded(),
            longest_gap_ns=max((b - a for a, b in zip(ordered, ordered[1:], strict=False)), default=0),
            last_call_ns=ordered[-1] if ordered else None,
        )

    def _histories(self) -> tuple[dict[str, GroupHistory], list[tuple[str, tuple[int, ...] | None]]]:
        """Return the collectives of each group as codes, and what the codes stand for."""
        codes: dict[tuple[str, str], int] = {}
        signatures: list[tuple[str, tuple[int, ...] | None]] = []
        history: dict[str, GroupHistory] = {}
        for entry in self.entries:
            if entry.get("is_p2p"):
                continue
            name = entry["profiling_name"]
            text = name, str(entry.get("input_sizes"))
            code = codes.get(text)
            if code is None:
                operation = _operation(name)
                if _PEERS.match(operation):
                    continue
                signatures.append((operation, _same_elements(operation, entry)))
                code = codes[text] = len(signatures)
            group, number = entry["process_group"][0], entry["collective_seq_id"]
            known = history.get(group)
            if known is None:
                known = history[group] = GroupHistory(number)
            place = number - known.first
            if place == len(known.codes):
                known.codes.append(code)
            elif 0 <= place < len(known.codes):
                known.codes[place] = code  # a coalesced group: its closing entry names the operation
            elif 0 < place < MAX_NUMBER_GAP:
                known.codes.extend(array("I", bytes(_CODE_BYTES * (place - len(known.codes)))))
                known.codes.append(code)
            else:
                raise ValueError(f"sequence number {number} after {known.last} in group {group!r}")
        return history, signatures

    def _split(self, history: Mapping[str, GroupHistory]) -> tuple[list[RecordedCall], list[RecordedCall]]:
        """Return the pending calls, and the last finished ones of each group."""
        calls: dict[tuple[str, bool, int], list[dict[str, Any]]] = {}
        for entry in self.entries:
            p2p = bool(entry.get("is_p2p")) or " " in entry["profiling_name"]
            number = entry["p2p_seq_id" if p2p else "collective_seq_id"]
            calls.setdefault((entry["process_group"][0], p2p, number), []).append(entry)
        pending: list[RecordedCall] = []
        finished: dict[str, list[RecordedCall]] = defaultdict(list)
        numbers: dict[tuple[str, bool], int] = {}
        blocked: set[tuple[str, bool]] = set()
        left = Counter(group for group, _, _ in calls)
        for (group, p2p, number), entries in calls.items():
            is_done = self._is_done(entries[-1])  # the closing entry of a coalesced group carries its state
            keep = not is_done or left[group] <= RECENT_CALLS
            left[group] -= 1
            messages = self._messages(entries, is_done) if p2p else ()
            if is_done and (group, p2p) not in blocked:
                numbers[group, p2p] = number
            elif not is_done:
                blocked.add((group, p2p))
            if keep:
                call = _call(entries, p2p, number, is_done, messages)
                (finished[group] if is_done else pending).append(call)
        for group, known in history.items():
            known.done = numbers.get((group, False), 0)
        return pending, [call for listed in finished.values() for call in listed]

    def _messages(self, entries: Iterable[dict[str, Any]], done: bool) -> tuple[Message, ...]:
        messages = []
        for entry in entries:
            match = _PEERS.match(_operation(entry["profiling_name"]))
            if match is not None:
                lane = entry["process_group"][0], match["operation"], int(match["peer"])
                counts = self.lanes[lane]
                messages.append(Message(match["operation"], lane[2], counts[0]))
                counts[0] += 1
                counts[1] += not done
        return tuple(messages)

    def _is_done(self, entry: Mapping[str, Any]) -> bool:
        retired = _backend(entry) in self.stateless and bool(entry["retired"])
        return bool(retired or entry["state"] == "completed")

    def _unrecorded(self) -> bool:
        """Return True if a call is pending that the recorder leaves out.

        Gloo counts sends and receives in `op_id` and in the status of the group, and records neither.
        """
        if any(_backend(entry) not in self.stateless for entry in self.entries):
            return False
        last: dict[str, int] = {}
        for entry in self.entries:
            identity, number = str(entry["pg_id"]), int(entry["op_id"])
            last[identity] = max(number, last.get(identity, 0))
        for identity, status in self.status.items():
            enqueued = int(status.get("last_enqueued_collective") or 0)
            completed = int(status.get("last_completed_collective") or 0)
            if enqueued > max(completed, last.get(str(identity), 0)):
                return True
        return False


_NO_GROUP = GroupMembers("", "", ())


def _is_default(entry: Mapping[str, Any]) -> bool:
    return bool(entry["process_group"][1] == "default_pg")


def _backend(entry: Mapping[str, Any]) -> str:
    backend, colon, _ = entry["profiling_name"].partition(":")
    return str(backend) if colon else ""


def _operation(profiling_name: str) -> str:
    return profiling_name.partition(":")[2] or profiling_name


def _stateless_backends(entries: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the backends whose entries never leave the state "scheduled", whatever becomes of the call."""
    backends: dict[str, bool] = {}
    for entry in entries:
        backend = _backend(entry)
        if backends.get(backend, True):
            backends[backend] = entry["state"] == "scheduled" and not entry.get("time_discovered_completed_ns")
    return {backend for backend, stateless in backends.items() if stateless} - _STATEFUL_BACKENDS


def _read_groups(config: Mapping[str, Any]) -> Iterable[GroupMembers]:
    for name, group in config.items():
        ranks = group.get("ranks") or ""
        numbers = _parse_ranks(ranks) if isinstance(ranks, str) else tuple(int(rank) for rank in ranks)
        yield GroupMembers(str(name), str(group.get("desc") or ""), numbers)


@lru_cache(maxsize=256)
def _parse_ranks(text: str) -> tuple[int, ...]:
    """Return the ranks of "[0, 1, 2]"."""
    return tuple(map(int, re.findall(r"\d{1,9}", text)))


def _elements(entry: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(math.prod(sizes) for sizes in (entry.get("input_sizes") or [])[:MAX_INPUTS])


def _same_elements(operation: str, entry: Mapping[str, Any]) -> tuple[int, ...] | None:
    return _elements(entry) if operation in SAME_ELEMENTS else None


def _call(
    entries: list[dict[str, Any]], p2p: bool, number: int, done: bool, messages: tuple[Message, ...]
) -> RecordedCall:
    last = entries[-1]
    operation = _operation(last["profiling_name"])
    match = _PEERS.match(operation)
    timeout = last.get("timeout_ms")
    completed = last.get("time_discovered_completed_ns")
    return RecordedCall(
        group=last["process_group"][0],
        p2p=p2p,
        number=number,
        operation=match["operation"] if match else operation,
        elements=_same_elements(operation, last),
        dtypes=tuple(map(str, (last.get("input_dtypes") or [])[:MAX_INPUTS])),
        messages=messages,
        done=done,
        created_ns=int(entries[0]["time_created_ns"]),
        completed_ns=int(completed) if completed else None,
        timeout_ns=int(timeout) * 1_000_000 if timeout else None,
        frames=tuple(
            StackFrame(str(frame["filename"]), int(frame["line"]), str(frame["name"]))
            for frame in (entries[0].get("frames") or last.get("frames") or [])[:MAX_FRAMES]
        ),
    )
