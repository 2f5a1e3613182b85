"""What the captures of a graph say about each kernel of its replays.

Captures that explain a replay equally well all have a say. A batch size in an annotation around the launch chooses
among captures of several sizes: the smallest that the batch fits in, as servers choose. The order of replays is no
evidence. A field is known if all launches that a kernel may stand for agree on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.devices import stream_ids
from torch_tb_profiler.model.origin_records import CaptureSet, LaunchSite, join_captures
from torch_tb_profiler.model.origins.captures import own_captures
from torch_tb_profiler.model.origins.replays import ReplayOrder, graph_replays, replayed_mask
from torch_tb_profiler.model.trace import NO_CODE, Int32, Int64, Trace

if TYPE_CHECKING:
    from torch_tb_profiler.model.origins.alignment import CaptureSequence, Match

SEVERAL_SIZES = "captures of several batch sizes fit"
NO_SIZE = "no capture has a batch size that this batch fits in"
SEVERAL_LAUNCHES = "several launches of the capture fit"
NOT_CAPTURED = "the capture has no launch of this name that must be this kernel's"


class ReplayedKernel(msgspec.Struct, frozen=True):
    """What is known of a replayed kernel; `reason` says why something isn't.

    owner, inputs  the operator that counts for its work, with the inputs that its cost depends on
    """

    operator: str | None = None
    modules: tuple[str, ...] | None = None
    lines: tuple[str, ...] | None = None
    shapes: str | None = None
    owner: str | None = None
    inputs: tuple[str | None, ...] = ()
    backward: bool | None = None
    reason: str | None = None


class ReplayedKernels(msgspec.Struct, frozen=True):
    """What is known of each of `device_links(trace).rows`.

    code     int32[k]  an index into `values`, NO_CODE if not replayed
    call     int64[k]  number of the call, of those that all replays repeat, that it is work of; NO_CODE if that or
             another part of the call's work is unknown
    matched  number of replays that each capture of `captures` explains
    """

    code: Int32
    call: Int64
    values: list[ReplayedKernel]
    captures: CaptureSet
    matched: list[int]


@derived
def all_captures(trace: Trace) -> CaptureSet:
    """Return the captures in the trace's own file and in the files beside it."""
    return join_captures([own_captures(trace), trace.origin_records.captures])


@derived
def replayed_kernels(trace: Trace) -> ReplayedKernels:
    """Return what the captures say of every replayed kernel."""
    if not replayed_mask(trace).any():
        count = len(device_links(trace).rows)
        none = np.full(count, NO_CODE, np.int32)
        return ReplayedKernels(none, none.astype(np.int64), [], CaptureSet(), [])
    replays, captures = graph_replays(trace), all_captures(trace)
    rows = device_links(trace).rows
    code, call = np.full(len(rows), NO_CODE, np.int32), np.full(len(rows), NO_CODE, np.int64)
    resolver = _Resolver(captures)
    labels = np.array([resolver.labels.code(text) for text in _names(trace, rows[replays.positions])], np.int32)
    label = labels[_dense_names(trace, rows[replays.positions])]
    stream = stream_ids(trace)[rows[replays.positions]].astype(np.int32)
    matched = [0] * len(captures.captures)
    bounds, first_call = replays.bounds.tolist(), 0
    for number, (low, high) in enumerate(zip(bounds[:-1], bounds[1:], strict=True)):
        kernels, calls, used = resolver.resolve(
            label[low:high], stream[low:high], ReplayOrder(int(replays.order[number])), replays.sizes[number]
        )
        code[replays.positions[low:high]] = kernels
        call[replays.positions[low:high]] = np.where(calls >= 0, first_call + calls, NO_CODE)
        first_call += int(calls.max(initial=NO_CODE)) + 1
        for capture in used:
            matched[capture] += 1
    return ReplayedKernels(code, call, resolver.values, captures, matched)


def _names(trace: Trace, rows: Int32) -> list[str]:
    return [trace.strings[code] if code >= 0 else "" for code in np.unique(trace.events.name[rows]).tolist()]


def _dense_names(trace: Trace, rows: Int32) -> Int32:
    return np.unique(trace.events.name[rows], return_inverse=True)[1].reshape(-1).astype(np.int32)


_Key = tuple[bytes, bytes, int | None]


class _Resolver:
    """Resolves each distinct replay once: the same kernels in the same order with the same batch size."""

    def __init__(self, captures: CaptureSet) -> None:
        from torch_tb_profiler.model.origins.alignment import Aligner, Labels, distinct_sequences

        self.labels = Labels()
        self.values: list[ReplayedKernel] = []
        self._captures = captures
        self._aligner = Aligner(distinct_sequences(captures.captures, self.labels))
        self._codes: dict[ReplayedKernel, int] = {}
        self._of_sites: dict[tuple[tuple[int, ...], str | None, bool], int] = {}
        self._matches: dict[tuple[bytes, bytes], tuple[list[tuple[CaptureSequence, Match]], str | None]] = {}
        self._resolved: dict[_Key, tuple[Int32, Int64, list[int]]] = {}

    def resolve(
        self, labels: Int32, streams: Int32, order: ReplayOrder, size: int | None
    ) -> tuple[Int32, Int64, list[int]]:
        """Return what is known of a replay.

        That is the code of the value of each kernel; the call that it is work of, numbered within the replay; and
        the captures that explain it.
        """
        placement = streams.tobytes() if order == ReplayOrder.UNKNOWN else bytes([order])
        key = labels.tobytes(), placement, size
        if key not in self._resolved:
            if key[:2] not in self._matches:
                self._matches[key[:2]] = self._aligner.matches(labels, streams, order)
            self._resolved[key] = self._resolve(len(labels), *self._matches[key[:2]], size)
        return self._resolved[key]

    def _resolve(
        self,
        count: int,
        matches: list[tuple[CaptureSequence, Match]],
        reason: str | None,
        size: int | None,
    ) -> tuple[Int32, Int64, list[int]]:
        if not matches:
            unknown = ReplayedKernel(reason=reason if self._captures.captures else None)
            return np.full(count, self._code(unknown), np.int32), np.full(count, NO_CODE, np.int64), []
        members = [(number, match) for sequence, match in matches for number in sequence.members]
        members, size_doubt = self._choose_size(members, size)
        several_sizes = len({self._captures.captures[number].size for number, _ in members}) > 1
        codes = np.empty(count, np.int32)
        for kernel in range(count):
            sites = {
                self._captures.captures[number].sites[place]
                for number, match in members
                for place in match.positions[kernel].tolist()
            }
            codes[kernel] = self._site_code(tuple(sorted(sites)), size_doubt, several_sizes)
        return codes, self._find_calls(members), [number for number, _ in members]

    def _find_calls(self, members: list[tuple[int, Match]]) -> Int64:
        """Return the call of each kernel, NO_CODE unless all captures agree on it and all its work is there."""
        found: list[Int64] = []
        for number, match in members:
            calls = np.array(self._captures.captures[number].calls, np.int64)
            of_kernel = np.full(len(match.positions), NO_CODE, np.int64)
            alone = np.array([len(places) == 1 for places in match.positions], np.bool_)
            if len(calls) and alone.any():
                of_kernel[alone] = calls[np.concatenate([match.positions[i] for i in np.flatnonzero(alone)])]
            launches, kernels = (
                np.bincount(each[each >= 0], minlength=int(calls.max(initial=0)) + 1)
                for each in (calls, of_kernel)
            )
            of_kernel[(launches != kernels)[of_kernel] & (of_kernel >= 0)] = NO_CODE
            found.append(of_kernel)
        agreed = np.all([each == found[0] for each in found], axis=0)
        return np.where(agreed, found[0], NO_CODE)

    def _choose_size(
        self, members: list[tuple[int, Match]], size: int | None
    ) -> tuple[list[tuple[int, Match]], str | None]:
        """Return the captures that fit the batch size if it is known, and why their shapes are in doubt, if so."""
        sizes = [self._captures.captures[number].size for number, _ in members]
        if size is None:
            return members, None
        if all(each is None for each in sizes):
            return members, None
        fitting = [each for each in sizes if each is not None and each >= size]
        if not fitting:
            return members, NO_SIZE
        smallest = min(fitting)
        others = [each.size for each in self._captures.captures if each.size is not None]
        size_doubt = NO_SIZE if any(size <= each < smallest for each in others) else None
        remaining = [member for member, each in zip(members, sizes, strict=True) if each in (smallest, None)]
        return remaining, size_doubt

    def _site_code(self, sites: tuple[int, ...], size_doubt: str | None, several_sizes: bool) -> int:
        key = sites, size_doubt, several_sizes
        if key not in self._of_sites:
            found = [self._captures.sites[site] for site in sites]
            self._of_sites[key] = self._code(_merge_sites(found, size_doubt, several_sizes))
        return self._of_sites[key]

    def _code(self, value: ReplayedKernel) -> int:
        if value not in self._codes:
            self._codes[value] = len(self.values)
            self.values.append(value)
        return self._codes[value]


def _merge_sites(sites: Sequence[LaunchSite], size_doubt: str | None, several_sizes: bool) -> ReplayedKernel:
    """Return what all launches that a kernel may stand for agree on.

    size_doubt          why the shapes of these captures may not be those of the replay
    several_sizes  whether captures of several batch sizes explain the replay
    """
    if not sites:
        return ReplayedKernel(reason=NOT_CAPTURED)
    first = sites[0]
    if len(sites) == 1 and size_doubt is None:
        return ReplayedKernel(
            first.operator,
            first.modules,
            first.lines or None,
            first.shapes,
            first.owner,
            first.inputs,
            first.backward,
        )
    operator = first.operator if all(each.operator == first.operator for each in sites) else None
    modules = first.modules if all(each.modules == first.modules for each in sites) else None
    lines = _find_common_lines([each.lines for each in sites])
    shapes = first.shapes if all(each.shapes == first.shapes for each in sites) and size_doubt is None else None
    one_owner = (
        all((each.owner, each.inputs) == (first.owner, first.inputs) for each in sites) and size_doubt is None
    )
    owner, inputs = (first.owner, first.inputs) if one_owner else (None, ())
    backward = first.backward if all(each.backward == first.backward for each in sites) else None
    reason = None
    if operator is None or modules is None or lines is None or shapes is None:
        reason = _disagreement(sites, size_doubt, several_sizes)
    return ReplayedKernel(operator, modules, lines, shapes, owner, inputs, backward, reason)


def _find_common_lines(stacks: Sequence[tuple[str, ...] | None]) -> tuple[str, ...] | None:
    """Return the innermost lines that all stacks share, None if they share none or one is unknown."""
    common: list[str] = []
    for lines in zip(*(stack or () for stack in stacks), strict=False):
        if len(set(lines)) > 1:
            break
        common.append(lines[0])
    return tuple(common) or None


def _disagreement(sites: Sequence[LaunchSite], size_doubt: str | None, several_sizes: bool) -> str | None:
    """Return why something is unknown; None if the only launch doesn't say it."""
    if size_doubt is not None:
        return size_doubt
    if len(sites) < 2:
        return None
    only_shapes = len({msgspec.structs.replace(each, shapes=None, owner=None, inputs=()) for each in sites}) == 1
    return SEVERAL_SIZES if only_shapes and several_sizes else SEVERAL_LAUNCHES
