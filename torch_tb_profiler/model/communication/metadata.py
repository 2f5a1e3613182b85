"""Facts of communication operations as recorded: collective, back end, group, peers, sizes.

The metadata comes first, then the inputs and the names of calls and kernels.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence

import msgspec
import numpy as np

from torch_tb_profiler.base.arrays import distinct
from torch_tb_profiler.model.communication.calls import CollectiveCalls
from torch_tb_profiler.model.communication.events import (
    ALL_TO_ALL,
    backend_from_kernel,
    backend_of_call,
    collective_from_kernel,
    collective_from_name,
)
from torch_tb_profiler.model.communication.groups import (
    MAX_RANKS,
    ProcessGroup,
    configured_groups,
    parse_ranks,
    parse_recorded_ranks,
    sole_group,
)
from torch_tb_profiler.model.devices import device_kind
from torch_tb_profiler.model.dtypes import bytes_per_element
from torch_tb_profiler.model.ranks import trace_rank
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Int32, Int64, Trace, distinct_codes

_MAX_BYTES = 2**50
"""An operation of this many bytes or more is damage."""


class CollectiveKinds(msgspec.Struct, frozen=True):
    """The name of each operation, and its library, None if unknown."""

    collective: list[str]
    backend: list[str | None]


def collective_kinds(trace: Trace, calls: CollectiveCalls) -> CollectiveKinds:
    """Return the collective and the back end of every operation."""
    info = trace.metadata.get("distributedInfo")
    default = info.get("backend") if isinstance(info, Mapping) else None
    default = default.lower() if isinstance(default, str) and default.isalpha() else None
    recorded = _arg_texts(trace, "Collective name", calls.recorded)
    named, outer = _event_names(trace, calls.named), _event_names(trace, calls.call)
    kernels = _event_names(trace, calls.first_kernel())
    seen: dict[tuple[str | None, ...], tuple[str, str | None]] = {}  # a cache: a job repeats its collectives
    result = CollectiveKinds([], [])
    for texts in zip(recorded, named, outer, kernels, strict=True):
        if texts not in seen:
            seen[texts] = _find_collective(*texts), _find_backend(trace, texts[1], texts[3], default)
        collective, backend = seen[texts]
        result.collective.append(collective)
        result.backend.append(backend)
    return result


def _find_collective(metadata: str | None, annotation: str | None, call: str | None, kernel: str | None) -> str:
    names = (collective_from_name(text or "") for text in (metadata, annotation, call))
    collectives = [name for name in names if name]
    # A barrier is an all-reduce of one element underneath.
    collective = "barrier" if "barrier" in collectives else next(iter(collectives), None)
    return collective or collective_from_kernel(kernel or "")


def _find_backend(trace: Trace, annotation: str | None, kernel: str | None, default: str | None) -> str | None:
    """Return the library of an operation; `default` is that of the job."""
    library = backend_from_kernel(kernel) if kernel else default
    if library == "custom" and device_kind(trace) in ("HPU", "NPU"):
        library = "hccl"  # the name of both Habana's library and Huawei's
    if library in ("nccl", "rccl") and default in ("nccl", "rccl"):
        library = default  # RCCL keeps NCCL's names
    return backend_of_call(annotation or "") or library


class MessageSizes(msgspec.Struct, frozen=True):
    """Sizes of k operations.

    dtype  element type as the trace spells it, None if unknown; the others are int64[k] as in Collectives
    """

    dtype: list[str | None]
    bytes_in: Int64
    bytes_out: Int64
    egress_bytes: Int64


def message_sizes(trace: Trace, calls: CollectiveCalls, collective: Sequence[str]) -> MessageSizes:
    """Return the sizes of every operation, from the metadata or else from the shapes of the inputs."""
    dtypes = _arg_texts(trace, "dtype", calls.recorded)
    sent, received, own_rank = (
        trace.arg_int(key, calls.recorded).tolist() for key in ("In msg nelems", "Out msg nelems", "Rank")
    )
    splits = _arg_texts(trace, "In split size", calls.recorded)
    inputs = _RecordedInputs(trace, calls)
    sizes = MessageSizes([], *(np.full(len(calls), ABSENT) for _ in range(3)))
    for i, dtype in enumerate(dtypes):
        width = bytes_per_element(dtype) if dtype else None
        if dtype is None or sent[i] == ABSENT:
            dtype, size = inputs.size(int(calls.named[i]), int(calls.recorded[i]), int(calls.call[i]))
            sizes.bytes_in[i] = ABSENT if size is None else _valid_size(size)
        elif width is not None:
            sizes.bytes_in[i], sizes.bytes_out[i] = _valid_size(sent[i] * width), _valid_size(received[i] * width)
            if collective[i] in ALL_TO_ALL and splits[i] and sizes.bytes_in[i] != ABSENT:
                sizes.egress_bytes[i] = _sum_egress_bytes(str(splits[i]), own_rank[i], sent[i] * width)
        sizes.dtype.append(dtype)
    return sizes


def _valid_size(size: int) -> int:
    """Return the size, or ABSENT if no operation can have it."""
    return size if 0 <= size < _MAX_BYTES else int(ABSENT)


def _sum_egress_bytes(splits: str, own_rank: int, sent: int) -> int:
    """Return the bytes that go to other ranks, by the rows that go to each; ABSENT if these aren't recorded."""
    rows = _parse_json(splits)
    if not isinstance(rows, list) or not all(type(count) is int and count >= 0 for count in rows):
        return int(ABSENT)
    if not 0 <= own_rank < len(rows) or sum(rows) == 0:
        return int(ABSENT)
    egress: int = sent - sent * rows[own_rank] // sum(rows)
    return egress


class _RecordedInputs:
    """The recorded shapes and types of inputs of these calls, not of all operators of the trace."""

    def __init__(self, trace: Trace, calls: CollectiveCalls) -> None:
        dims = "Input Dims" if "Input Dims" in trace.args else "Input dims"
        rows = distinct(np.concatenate([calls.named, calls.recorded, calls.call]))
        self._place = {row: place for place, row in enumerate(rows.tolist())}
        self._dims, self._types = trace.arg_codes(dims, rows), trace.arg_codes("Input type", rows)

    def size(self, named: int, recorded: int, call: int) -> tuple[str | None, int | None]:
        """Return (dtype, bytes) of the inputs of the first of these calls that lists tensors."""
        if not self._dims[1] or not self._types[1]:
            return None, None
        for row in (named, recorded, call):
            tensors = self._parse_tensors(row) if row >= 0 else []
            # The inputs of c10d's operators begin with the output.
            if tensors and (len(tensors) == 1 or row == named):
                return tensors[0][1], sum(math.prod(shape) * width for shape, _, width in tensors)
        return None, None

    def _parse_tensors(self, row: int) -> list[tuple[list[int], str, int]]:
        """Return (shape, dtype, bytes per element) of each; lists of tensors record no types and are left out."""
        place = self._place[row]
        shapes, types = (
            _parse_json(texts[codes[place]]) if codes[place] >= 0 else None
            for codes, texts in (self._dims, self._types)
        )
        if not isinstance(shapes, list) or not isinstance(types, list):
            return []
        tensors = []
        for shape, dtype in zip(shapes, types, strict=False):
            width = bytes_per_element(dtype) if isinstance(dtype, str) else None
            if width is not None and isinstance(shape, list) and shape and all(type(n) is int for n in shape):
                tensors.append((shape, dtype, width))
        return tensors


def process_groups(
    trace: Trace, calls: CollectiveCalls, backend: Sequence[str | None]
) -> tuple[Int32, list[ProcessGroup]]:
    """Return (int32[k] codes of the groups, the groups)."""
    keys = ("Process Group Name", "Process Group Description", "Process Group Ranks")
    columns = [_arg_texts(trace, key, calls.recorded) for key in keys]
    sizes = trace.arg_int("Group size", calls.recorded).tolist()
    configured = {group.name: group for group, _ in configured_groups(trace)}
    codes: dict[ProcessGroup, int] = {}
    seen: dict[tuple[object, ...], int] = {}
    group_codes = np.empty(len(calls), np.int32)
    for i, described in enumerate(zip(*columns, sizes, backend, strict=True)):
        if described not in seen:
            name, description, ranks, size, library = described
            group = _parse_group(name, description, ranks, size if 0 < size <= MAX_RANKS else None, configured)
            seen[described] = codes.setdefault(group or sole_group(trace, library), len(codes))
        group_codes[i] = seen[described]
    return group_codes, list(codes)


def _parse_group(
    name: str | None,
    description: str | None,
    ranks_text: str | None,
    size: int | None,
    configured: Mapping[str | None, ProcessGroup],
) -> ProcessGroup | None:
    """Return the group of the metadata, completed by the job's configuration; None if it names no group."""
    ranks = parse_recorded_ranks(ranks_text, size) if ranks_text else None
    known = configured.get(name)
    if known is not None and ranks is None and size in (None, known.size):
        ranks = known.ranks
    if name is None and ranks is None:
        return None
    return ProcessGroup(name, description or (known.description if known else None), ranks, size)


def message_peers(
    trace: Trace, calls: CollectiveCalls, collective: Sequence[str], groups: Sequence[ProcessGroup]
) -> tuple[Int64, Int64]:
    """Return int64[k] source and target ranks of messages, ABSENT where unknown; `groups` by call."""
    rank = trace_rank(trace)
    here = int(ABSENT) if rank is None else rank
    source, target = (trace.arg_int(key, calls.recorded) for key in ("Src Rank", "Dst Rank"))
    inputs, texts = trace.arg_codes("Concrete Inputs", calls.call)
    for i, name in enumerate(collective):
        peers = {"send": target, "recv": source}.get(name)
        if peers is not None and peers[i] == ABSENT and inputs[i] >= 0:
            peers[i] = _parse_peer_rank(_parse_json(texts[inputs[i]]), groups[i])
    sends = np.array([name == "send" for name in collective], np.bool_)
    receives = np.array([name == "recv" for name in collective], np.bool_)
    return (
        np.where(sends, here, np.where(receives, source, ABSENT)),
        np.where(receives, here, np.where(sends, target, ABSENT)),
    )


def _parse_peer_rank(inputs: object, group: ProcessGroup) -> int:
    """Return the rank in the inputs of `c10d::send(tensors, group, rank in group, tag)`, else ABSENT."""
    text = inputs[2] if isinstance(inputs, list) and len(inputs) == 4 else None
    if not isinstance(text, str) or not text.isdecimal() or len(text) > 9:
        return int(ABSENT)
    ranks = None if group.ranks is None else parse_ranks(group.ranks)
    if ranks is None:
        return int(text)
    return ranks[int(text)] if int(text) < len(ranks) else int(ABSENT)


def _arg_texts(trace: Trace, key: str, rows: Int32) -> list[str | None]:
    codes, texts = trace.arg_codes(key, rows)
    known = {code: texts[code].strip('"') for code in distinct_codes(codes)}
    return [known.get(code) for code in codes.tolist()]


def _event_names(trace: Trace, rows: Int32) -> list[str | None]:
    names = np.where(rows >= 0, trace.events.name[rows], NO_CODE)
    return [trace.strings[code] if code >= 0 else None for code in names.tolist()]


def _parse_json(text: str) -> object:
    loads: Callable[[str], object] = json.loads
    try:
        return loads(text)
    except ValueError:
        return None
