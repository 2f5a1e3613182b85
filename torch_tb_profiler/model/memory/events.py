"""What the allocators said: the `[memory]` events as columns, and the devices they speak of.

    time  device  address  size   allocated  reserved
      10  GPU0      0x100   512         512      2048      an allocation
      30  GPU0      0x100  -512           0      2048      its release

The totals of a record are those after it. A record belongs to the innermost operator that runs on its thread at
that instant, whatever Python frames or runtime calls lie between.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.base.markers import is_step
from torch_tb_profiler.model.calls.calltree import build_call_tree, call_tree
from torch_tb_profiler.model.calls.enclosing import innermost_enclosing
from torch_tb_profiler.model.calls.operators import operator_name_mask, operators
from torch_tb_profiler.model.devices import describe_device, device_kind, device_name
from torch_tb_profiler.model.kinds import Kind, event_kinds, rows_of_kind
from torch_tb_profiler.model.memory.mappings import with_mappings
from torch_tb_profiler.model.trace import (
    ABSENT,
    NO_CODE,
    Bool,
    Int32,
    Int64,
    Trace,
    derived,
    distinct_codes,
    name_mask,
)

EVENT_NAME = "[memory]"
FAILURE_NAME = "[OutOfMemory]"

_PROVIDERS = "aten::empty"

MOST_DEVICES = 256

_CPU, _CUDA, _HIP = 0, 1, 6

# Device types as PyTorch numbers them (`c10/core/DeviceType.h`); those that no profiler writes are left out.
_KINDS = {
    _CPU: "CPU",
    _CUDA: "CUDA",
    _HIP: "ROCm",
    8: "MAIA",
    9: "XLA",
    12: "XPU",
    13: "MPS",
    15: "HPU",
    18: "IPU",
    19: "MTIA",
    20: "PrivateUse1",
}


class MemoryDevice(msgspec.Struct, frozen=True):
    """A device with memory events; `name` is unique in the trace ("CPU", "GPU 0", "XPU 1", ...).

    hardware, capacity  of the card, None where the file does not say
    """

    name: str
    kind: str
    id: int
    hardware: str | None
    capacity: int | None


class MemoryRecords(msgspec.Struct, frozen=True):
    """Memory events by time, in file order where times are equal; columns of length k.

    rows       int32  their rows in the trace
    time       int64  ns
    device     int32  index into `devices`: the CPU, then the others by kind and id
    address    int64  ABSENT where the file has none
    size       int64  bytes: positive of an allocation, negative of a release; 0 where the file has none
    allocated  int64  bytes in use on the device after the event; reserved: held by its allocator; else ABSENT.
                      On the CPU with what is mapped (`mappings`)
    """

    devices: tuple[MemoryDevice, ...]
    rows: Int32
    time: Int64
    device: Int32
    address: Int64
    size: Int64
    allocated: Int64
    reserved: Int64

    def __len__(self) -> int:
        return len(self.rows)


def is_memory(trace: Trace, name: str = EVENT_NAME) -> Bool:
    """bool[n]: allocations and releases, or the events of another name."""
    named = name_mask(trace.strings, name.__eq__)
    has_name: Bool = named[trace.events.name]
    return has_name


@derived
def memory_records(trace: Trace) -> MemoryRecords:
    """The allocations and releases that have a time."""
    return _records(trace, EVENT_NAME)


@derived
def memory_failures(trace: Trace) -> MemoryRecords:
    """Allocations that found no memory (`[OutOfMemory]`), with the totals at that time."""
    return _records(trace, FAILURE_NAME)


def _records(trace: Trace, name: str) -> MemoryRecords:
    rows = np.flatnonzero(is_memory(trace, name) & (trace.events.start != ABSENT)).astype(np.int32)
    rows = rows[np.argsort(trace.events.start[rows], kind="stable")]
    kind, id = trace.arg_int("Device Type", rows), trace.arg_int("Device Id", rows)
    id[(kind == _CPU) | (id == ABSENT)] = -1
    devices, device = _distinct_pairs(kind, id)
    size, allocated, reserved = (
        trace.arg_int(key, rows) for key in ("Bytes", "Total Allocated", "Total Reserved")
    )
    address, size = trace.arg_int("Addr", rows), np.where(_sound(size), size, 0)
    allocated, reserved = (np.where(_sound(totals), totals, ABSENT) for totals in (allocated, reserved))
    cpu = np.flatnonzero(kind == _CPU)
    allocated[cpu], reserved[cpu] = with_mappings(address[cpu], size[cpu], allocated[cpu], reserved[cpu])
    return MemoryRecords(
        devices=_devices(trace, devices),
        rows=rows,
        time=trace.events.start[rows],
        device=device,
        address=address,
        size=size,
        allocated=allocated,
        reserved=reserved,
    )


def _sound(sizes: Int64) -> Bool:
    """bool[k]: which sizes are known and none of a damaged file: less than a pebibyte."""
    return (sizes > -(2**50)) & (sizes < 2**50)


def _distinct_pairs(first: Int64, second: Int64) -> tuple[list[tuple[int, int]], Int32]:
    """(distinct pairs in order, code of each); there are few, so they are sought one after the other.

    A damaged file may have a pair for every event: after `MOST_DEVICES` the rest are one pair, of the unknown.
    """
    codes = np.full(len(first), NO_CODE, np.int32)
    pairs: list[tuple[int, int]] = []
    while (left := np.flatnonzero(codes < 0)).size:
        pair = int(first[left[0]]), int(second[left[0]])
        alike = (first == pair[0]) & (second == pair[1])
        if len(pairs) == MOST_DEVICES:
            pair, alike = (int(ABSENT), int(ABSENT)), left
        codes[alike] = len(pairs)
        pairs.append(pair)
    order = sorted(range(len(pairs)), key=pairs.__getitem__)
    rank = np.argsort(np.array(order, np.int32)).astype(np.int32)
    return [pairs[i] for i in order], rank[codes]


def _devices(trace: Trace, keys: list[tuple[int, int]]) -> tuple[MemoryDevice, ...]:
    made: list[MemoryDevice] = []
    for type_, id in keys:
        kind = _KINDS.get(type_, "unknown" if type_ == ABSENT else f"device type {type_}")
        vendor = device_kind(trace)
        if type_ in (_CUDA, _HIP) and vendor in ("CUDA", "ROCm", "HPU"):
            kind = vendor  # builds for ROCm and Gaudi pass their devices off as CUDA's or as each other's
        name = _name(kind, id)
        if any(device.name == name for device in made):
            name = f"{name} (device type {type_})"
        info = describe_device(trace, id) if type_ != _CPU else None
        hardware, capacity = (None, None) if info is None else (info.name, info.memory_bytes)
        made.append(MemoryDevice(name, kind, id, hardware, capacity))
    return tuple(made)


def _name(kind: str, id: int) -> str:
    if kind == "CPU":
        return "CPU"
    if kind in _KINDS.values() and kind != "PrivateUse1":
        return device_name(kind, id if id >= 0 else "").strip()
    return f"{kind}:{id}" if id >= 0 else kind


@derived
def memory_calls(trace: Trace) -> Int32:
    """int32[k]: for each record the row of the innermost operator call around it, NO_CODE for none."""
    return calls_around(trace, memory_records(trace).rows)


def calls_around(trace: Trace, asked: Int32) -> Int32:
    """int32[k]: the same for any rows of memory events."""
    rows = rows_of_kind(trace, Kind.CPU_OP)
    around = innermost_enclosing(trace, build_call_tree(trace, rows), _threads_of(trace, rows), asked)[asked]
    counts = (around >= 0) & operator_name_mask(trace)[trace.events.name[around]]
    calls: Int32 = np.where(counts, around, NO_CODE).astype(np.int32)
    return calls


@derived
def memory_operators(trace: Trace) -> Int32:
    """int32[k]: for each record the position in `operators(trace).rows` of its operator, NO_CODE for none."""
    calls = memory_calls(trace)
    owners: Int32 = np.where(calls >= 0, operators(trace).owner[calls], NO_CODE).astype(np.int32)
    return owners


def _threads_of(trace: Trace, rows: Int32) -> Int32:
    """int32[n]: thread of each event, spelled as these rows spell it.

    Before PyTorch 1.10 operators gave their thread as text, memory events as a number.
    """
    codes = np.arange(len(trace.threads), dtype=np.int32)
    spelled = [(str(thread.pid), str(thread.tid)) for thread in trace.threads]
    used = {spelled[code]: code for code in distinct_codes(trace.events.thread[rows])}
    for code, text in enumerate(spelled):
        codes[code] = used.get(text, code)
    known: Int32 = codes[trace.events.thread]
    return known


@derived
def memory_names(trace: Trace) -> tuple[Int32, list[str]]:
    """(int32[k] codes, texts): what allocated, as a reader knows it; NO_CODE outside operators.

    The name of the operator; of those that only provide memory (`aten::empty`, `aten::empty_strided`, ...) with
    the operator or annotation around it, steps aside: "aten::zeros (aten::empty)".
    """
    calls, count = memory_calls(trace), len(trace.strings) + 1
    name = np.where(calls >= 0, trace.events.name[calls], NO_CODE).astype(np.int64)
    providers = [
        code for code in distinct_codes(name.astype(np.int32)) if trace.strings[code].startswith(_PROVIDERS)
    ]
    key = name
    for turn, code in enumerate(providers, 1):
        mine = np.flatnonzero(name == code)
        own, which = np.unique(calls[mine], return_inverse=True)
        outer = _around(trace, own)[which]
        key[mine[outer >= 0]] = turn * count + trace.events.name[outer[outer >= 0]]
    used = np.zeros((len(providers) + 1) * count + 1, np.bool_)
    used[key] = True  # the last cell answers for NO_CODE
    used[-1] = False
    codes = np.where(key >= 0, np.cumsum(used)[key] - 1, NO_CODE).astype(np.int32)
    texts = []
    for turn, code in (divmod(each, count) for each in np.flatnonzero(used).tolist()):
        text = trace.strings[code] if code < count - 1 else ""
        texts.append(f"{text} ({trace.strings[providers[turn - 1]]})" if turn else text)
    return codes, texts


def _around(trace: Trace, rows: Int32) -> Int32:
    """The innermost operator or annotation around each of these calls; steps are none."""
    parent = call_tree(trace).parent
    named = np.isin(event_kinds(trace), (Kind.CPU_OP, Kind.ANNOTATION))
    named &= ~name_mask(trace.strings, is_step)[trace.events.name]
    above = parent[rows]
    while (seeks := (above >= 0) & ~named[above]).any():
        above[seeks] = parent[above[seeks]]
    return above
