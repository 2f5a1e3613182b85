"""What a trace says of its communication operations: collective, back end, group, peers, sizes.

Recorded metadata first, then the inputs and the names of calls and kernels.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence

import msgspec
import numpy as np

from torch_tb_profiler.model.communication.calls import CollectiveCalls
from torch_tb_profiler.model.communication.dtypes import bytes_per_element
from torch_tb_profiler.model.communication.groups import (
    MOST_RANKS,
    ProcessGroup,
    configured_groups,
    read_ranks,
    sole_group,
    unspell_ranks,
)
from torch_tb_profiler.model.communication.names import (
    ALL_TO_ALL,
    BACKEND,
    backend_of_kernel,
    collective_in,
    collective_of_kernel,
)
from torch_tb_profiler.model.devices import device_kind
from torch_tb_profiler.model.ranks import trace_rank
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Int32, Int64, Trace

_TOO_MUCH = 2**50
"""Bytes that no operation moves: such a number is damage."""


class Kinds(msgspec.Struct, frozen=True):
    """collective: name of each operation; backend: its library, None if unknown."""

    collective: list[str]
    backend: list[str | None]


def kinds_of(trace: Trace, calls: CollectiveCalls) -> Kinds:
    """Collective and back end of every operation."""
    info = trace.metadata.get("distributedInfo")
    default = info.get("backend") if isinstance(info, Mapping) else None
    default = default.lower() if isinstance(default, str) and default.isalpha() else None
    recorded = _texts(trace, "Collective name", calls.recorded)
    named, outer = _names(trace, calls.named), _names(trace, calls.call)
    kernels = _names(trace, calls.first_kernel())
    seen: dict[tuple[str | None, ...], tuple[str, str | None]] = {}  # a job repeats its collectives
    result = Kinds([], [])
    for texts in zip(recorded, named, outer, kernels, strict=True):
        if texts not in seen:
            seen[texts] = _collective(*texts), _backend(trace, texts[1], texts[3], default)
        collective, backend = seen[texts]
        result.collective.append(collective)
        result.backend.append(backend)
    return result


def _collective(metadata: str | None, annotation: str | None, call: str | None, kernel: str | None) -> str:
    collectives = [what for what in (collective_in(text or "") for text in (metadata, annotation, call)) if what]
    # A barrier is an all-reduce of one element underneath.
    what = "barrier" if "barrier" in collectives else next(iter(collectives), None)
    return what or collective_of_kernel(kernel or "")


def _backend(trace: Trace, annotation: str | None, kernel: str | None, default: str | None) -> str | None:
    """`default`: of the job."""
    match = BACKEND.match(annotation or "")
    library = backend_of_kernel(kernel) if kernel else default
    if library == "custom" and device_kind(trace) in ("HPU", "NPU"):
        library = "hccl"  # what Habana's library and Huawei's are both called
    if library in ("nccl", "rccl") and default in ("nccl", "rccl"):
        library = default  # RCCL keeps NCCL's names
    return match[1].lower() if match else library


class Sizes(msgspec.Struct, frozen=True):
    """dtype: as the trace spells it, None if unknown; the others int64[k] as in Collectives."""

    dtype: list[str | None]
    bytes_in: Int64
    bytes_out: Int64
    egress_bytes: Int64


def sizes_of(trace: Trace, calls: CollectiveCalls, collective: Sequence[str]) -> Sizes:
    """Sizes of every operation: from the metadata, else from the shapes of the inputs."""
    dtypes = _texts(trace, "dtype", calls.recorded)
    put, got, own = (
        trace.arg_int(key, calls.recorded).tolist() for key in ("In msg nelems", "Out msg nelems", "Rank")
    )
    splits = _texts(trace, "In split size", calls.recorded)
    inputs = _Inputs(trace)
    sizes = Sizes([], *(np.full(len(calls), ABSENT) for _ in range(3)))
    for i, dtype in enumerate(dtypes):
        width = bytes_per_element(dtype) if dtype else None
        if dtype is None or put[i] == ABSENT:
            dtype, size = inputs.of(int(calls.named[i]), int(calls.recorded[i]), int(calls.call[i]))
            sizes.bytes_in[i] = ABSENT if size is None else _credible(size)
        elif width is not None:
            sizes.bytes_in[i], sizes.bytes_out[i] = _credible(put[i] * width), _credible(got[i] * width)
            if collective[i] in ALL_TO_ALL and splits[i] and sizes.bytes_in[i] != ABSENT:
                sizes.egress_bytes[i] = _egress(str(splits[i]), own[i], put[i] * width)
        sizes.dtype.append(dtype)
    return sizes


def _credible(size: int) -> int:
    """The size; ABSENT if nothing has it."""
    return size if 0 <= size < _TOO_MUCH else int(ABSENT)


def _egress(splits: str, own: int, put: int) -> int:
    """Bytes that go to other ranks, from how many rows go to each; ABSENT if that is not recorded."""
    rows = _json(splits)
    if not isinstance(rows, list) or not all(type(each) is int and each >= 0 for each in rows):
        return int(ABSENT)
    if not 0 <= own < len(rows) or sum(rows) == 0:
        return int(ABSENT)
    egress: int = put - put * rows[own] // sum(rows)
    return egress


class _Inputs:
    """Sizes from the shapes and types of recorded inputs."""

    def __init__(self, trace: Trace) -> None:
        dims = "Input Dims" if "Input Dims" in trace.args else "Input dims"
        self._dims, self._types = trace.arg_codes(dims), trace.arg_codes("Input type")

    def of(self, named: int, recorded: int, call: int) -> tuple[str | None, int | None]:
        """(dtype, bytes) of what the first of these calls that lists tensors puts in."""
        if not self._dims[1] or not self._types[1]:
            return None, None
        for row in (named, recorded, call):
            tensors = self._tensors(row) if row >= 0 else []
            # The inputs of c10d's operators begin with the output.
            if tensors and (len(tensors) == 1 or row == named):
                return tensors[0][1], sum(math.prod(shape) * width for shape, _, width in tensors)
        return None, None

    def _tensors(self, row: int) -> list[tuple[list[int], str, int]]:
        """(shape, dtype, bytes per element); lists of tensors are left out, as their types are not recorded."""
        shapes, types = (
            _json(texts[codes[row]]) if codes[row] >= 0 else None for codes, texts in (self._dims, self._types)
        )
        if not isinstance(shapes, list) or not isinstance(types, list):
            return []
        tensors = []
        for shape, dtype in zip(shapes, types, strict=False):
            width = bytes_per_element(dtype) if isinstance(dtype, str) else None
            if width is not None and isinstance(shape, list) and shape and all(type(n) is int for n in shape):
                tensors.append((shape, dtype, width))
        return tensors


def groups_of(
    trace: Trace, calls: CollectiveCalls, backend: Sequence[str | None]
) -> tuple[Int32, list[ProcessGroup]]:
    """(int32[k] codes, the process groups)."""
    keys = ("Process Group Name", "Process Group Description", "Process Group Ranks")
    columns = [_texts(trace, key, calls.recorded) for key in keys]
    sizes = trace.arg_int("Group size", calls.recorded).tolist()
    configured = {group.name: group for group, _ in configured_groups(trace)}
    codes: dict[ProcessGroup, int] = {}
    seen: dict[tuple[object, ...], int] = {}
    group_codes = np.empty(len(calls), np.int32)
    for i, described in enumerate(zip(*columns, sizes, backend, strict=True)):
        if described not in seen:
            name, description, ranks, size, library = described
            group = _described(name, description, ranks, size if 0 < size <= MOST_RANKS else None, configured)
            seen[described] = codes.setdefault(group or sole_group(trace, library), len(codes))
        group_codes[i] = seen[described]
    return group_codes, list(codes)


def _described(
    name: str | None,
    description: str | None,
    ranks_text: str | None,
    size: int | None,
    configured: Mapping[str | None, ProcessGroup],
) -> ProcessGroup | None:
    """The group that the metadata describes, completed from the job's description; None if it names none."""
    ranks = read_ranks(ranks_text, size) if ranks_text else None
    known = configured.get(name)
    if known is not None and ranks is None and size in (None, known.size):
        ranks = known.ranks
    if name is None and ranks is None:
        return None
    return ProcessGroup(name, description or (known.description if known else None), ranks, size)


def peers_of(
    trace: Trace, calls: CollectiveCalls, collective: Sequence[str], groups: Sequence[ProcessGroup]
) -> tuple[Int64, Int64]:
    """(int64[k] source rank, int64[k] target rank) of messages, ABSENT where unknown; `groups` of the calls."""
    own = trace_rank(trace)
    here = int(ABSENT) if own is None else own
    source, target = (trace.arg_int(key, calls.recorded) for key in ("Src Rank", "Dst Rank"))
    inputs, texts = trace.arg_codes("Concrete Inputs")
    for i, what in enumerate(collective):
        peers = {"send": target, "recv": source}.get(what)
        if peers is not None and peers[i] == ABSENT and calls.call[i] >= 0 and inputs[calls.call[i]] >= 0:
            peers[i] = _peer(_json(texts[inputs[calls.call[i]]]), groups[i])
    sends = np.array([what == "send" for what in collective], np.bool_)
    receives = np.array([what == "recv" for what in collective], np.bool_)
    return (
        np.where(sends, here, np.where(receives, source, ABSENT)),
        np.where(receives, here, np.where(sends, target, ABSENT)),
    )


def _peer(inputs: object, group: ProcessGroup) -> int:
    """The rank that `c10d::send(tensors, group, rank in the group, tag)` names, ABSENT if it is not recorded."""
    text = inputs[2] if isinstance(inputs, list) and len(inputs) == 4 else None
    if not isinstance(text, str) or not text.isdecimal() or len(text) > 9:
        return int(ABSENT)
    ranks = None if group.ranks is None else unspell_ranks(group.ranks)
    if ranks is None:
        return int(text)
    return ranks[int(text)] if int(text) < len(ranks) else int(ABSENT)


def _texts(trace: Trace, key: str, rows: Int32) -> list[str | None]:
    codes, texts = trace.arg_codes(key)
    cells = np.append(codes, np.int32(NO_CODE))[rows]
    return [texts[code].strip('"') if code >= 0 else None for code in cells.tolist()]


def _names(trace: Trace, rows: Int32) -> list[str | None]:
    names = np.append(trace.events.name, np.int32(NO_CODE))[rows]
    return [trace.strings[code] if code >= 0 else None for code in names.tolist()]


def _json(text: str) -> object:
    loads: Callable[[str], object] = json.loads
    try:
        return loads(text)
    except ValueError:
        return None
