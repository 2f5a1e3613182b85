"""Payload of the Hangs tab."""

from __future__ import annotations

from typing import Literal

import msgspec

from torch_tb_profiler.analyses.hangs.verdict import VerdictKind
from torch_tb_profiler.views._shared.text import Text

Role = Literal["culprit", "waiting", "unseen", "idle", "missing", "unreadable"]


class HangWait(msgspec.Struct, frozen=True):
    """A call in which a culprit is waited for."""

    group: str
    group_desc: str
    collective_seq_id: int | None
    p2p_seq_id: int | None
    profiling_name: str
    line: str | None


class HangVerdictPayload(msgspec.Struct, frozen=True):
    """Who holds the job up.

    culprit_ranks           global ranks; the members of a cycle; empty if nobody is to blame
    group, group_desc       where the culprit is waited for first; lists for a cycle across groups
    collective_seq_id       of the waiters' call, null for a point-to-point call
    p2p_seq_id              of the first direct waiter's call, null for a collective
    profiling_name          operation without backend and peers
    culprit_profiling_name  what the culprit called instead, null where it doesn't differ
    waiting_ranks           held up, directly or in turn, with a readable dump; includes the members of a cycle
    unseen_waiting_ranks    held up, too, without a readable dump
    directly_waiting_ranks  those that wait for the culprit itself
    line                    the culprit's own call of a mismatch, else the first direct waiter's
    alternatives            other calls in which the culprit is waited for directly
    why_unknown             what the dumps leave open, null if nothing
    """

    verdict: VerdictKind
    culprit_ranks: list[int]
    group: str | list[str] | None
    group_desc: str | list[str] | None
    collective_seq_id: int | None
    p2p_seq_id: int | None
    profiling_name: str | None
    culprit_profiling_name: str | None
    waiting_ranks: list[int]
    unseen_waiting_ranks: list[int]
    directly_waiting_ranks: list[int]
    line: str | None
    alternatives: list[HangWait]
    why_unknown: str | None


class HangFact(msgspec.Struct, frozen=True):
    """A name and its value, or what was ruled out and the evidence."""

    title: str
    text: str


class HangStackFrame(msgspec.Struct, frozen=True):
    """A Python frame; `library` frames belong to an installed package or the standard library."""

    file: str
    line: int
    function: str
    library: bool


class HangStack(msgspec.Struct, frozen=True):
    """Ranks with the same stack, the innermost frame first.

    source   the call that recorded it, or the tool that wrote it
    culprit  the ranks hold the job up
    note     what is known about them beside the stack
    """

    title: str
    ranks: list[int]
    source: Literal["flight recorder", "py-spy", "faulthandler"]
    culprit: bool
    frames: list[HangStackFrame]
    note: str | None


class HangRankRow(msgspec.Struct, frozen=True):
    """A rank.

    state        of its dump: "ready", "unreadable", "missing"
    file         its dump, null if there is none; problem: why it can't be read
    role         culprit, waiting, unseen (held up without a readable dump), idle
    group, pending_name, pending_seq_id, waited_ns  its first pending call and the age of that, null without one
    line         where that call is in the user's code
    last_name, last_seq_id, last_group  the last call that finished
    entries      calls in its recorder; lost: older ones are overwritten
    """

    rank: int
    state: Literal["ready", "unreadable", "missing"]
    role: Role
    group: str | None
    pending_name: str | None
    pending_seq_id: int | None
    waited_ns: int | None
    line: str | None
    last_group: str | None
    last_name: str | None
    last_seq_id: int | None
    entries: int | None
    lost: bool
    file: str | None
    problem: str | None


class HangGroupRow(msgspec.Struct, frozen=True):
    """A process group.

    last_finished  number of the last collective that all its readable members finished, null if none
    first_pending  number of the first one that is pending on a member; pending_name: its name
    waiting        members whose first pending call it is
    missing        members that are not in it
    waits_for      whom the group waits for, in words
    root           the culprit is waited for here first
    """

    group: str
    group_desc: str
    ranks: list[int]
    last_finished: int | None
    first_pending: int | None
    pending_name: str | None
    waiting: list[int]
    missing: list[int]
    waits_for: str
    root: bool


class HangCallRow(msgspec.Struct, frozen=True):
    """A collective of the group of the verdict; the ranks that are in no list finished it.

    waiting    members whose first pending call it is; pending: members that queued it behind another call
    missing    members that never called it
    different  members that called something else, and what: `different_names` has a name for each
    unseen     members without a readable dump
    unknown    members whose recorder has overwritten it
    elements   elements of its inputs, null if unknown
    """

    group: str
    collective_seq_id: int
    profiling_name: str
    elements: list[int] | None
    waiting: list[int]
    pending: list[int]
    missing: list[int]
    different: list[int]
    different_names: list[str]
    unseen: list[int]
    unknown: list[int]


class HangsPayload(msgspec.Struct, frozen=True):
    """Who holds a hung job up, from the flight recorders of its ranks.

    headline     who, in which call, for how long
    explanation  what is known about the culprit, and what to do next
    as_of_ns     epoch time of the last dump, null if the storage has no times of files
    facts        of the verdict, in words
    ruled_out    other explanations, with the evidence against each
    calls        the last collectives of the group of the verdict, in order
    problems     files beside the dumps that can't be read, in words
    groups       the root first
    """

    headline: Text
    explanation: Text
    as_of_ns: int | None
    verdict: HangVerdictPayload
    facts: list[HangFact]
    ruled_out: list[HangFact]
    stacks: list[HangStack]
    ranks: list[HangRankRow]
    groups: list[HangGroupRow]
    calls: list[HangCallRow]
    problems: list[str]
