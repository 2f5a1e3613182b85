"""Allocator events of a trace: the `[memory]` events as columns, their devices, and the operators they belong to.

    time  device  address  size   allocated  reserved
      10  GPU0      0x100   512         512      2048      an allocation
      30  GPU0      0x100  -512           0      2048      its release

The totals of a record are those after it. A record belongs to the innermost operator that runs on its thread at
that instant, whatever Python frames or runtime calls lie between.

Tensors in mapped memory, such as those that DataLoader workers pass on, are recorded with totals that aren't the
allocator's: 0 bytes allocated and the size of the mapping itself reserved, and 0 of both when it is unmapped
(`MapAllocator.cpp`). Here mapped bytes are in use like any others: the totals are the allocator's plus what is
mapped.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.base.markers import is_step
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.calls.calltree import build_call_tree, call_tree, innermost_enclosing
from torch_tb_profiler.model.devices import describe_device, device_kind, device_name
from torch_tb_profiler.model.kinds import Kind, event_kinds, rows_of_kind
from torch_tb_profiler.model.operators import operator_name_mask, operators
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Int32, Int64, Trace, distinct_codes, name_mask

ALLOCATION_EVENT = "[memory]"
OUT_OF_MEMORY_EVENT = "[OutOfMemory]"

MAX_DEVICES = 256
"""Most devices that are told apart; a damaged file may have a device for every event."""

_PROVIDERS = "aten::empty"
"""Start of the names of operators that only provide memory for others."""

_MAX_BYTES = 2**50
"""A size or total of this many bytes (a pebibyte) or more is damage."""

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

    hardware  name of the card, None where the file does not contain it
    capacity  bytes of the card, None where the file does not contain it
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
    allocated  int64  bytes in use on the device after the event, mapped memory of the CPU included; else ABSENT
    reserved   int64  bytes held by the device's allocator after the event; else ABSENT
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


def has_memory(trace: Trace) -> bool:
    """Return whether any memory event has a time."""
    return len(_find_placed_rows(trace, ALLOCATION_EVENT)) > 0


def is_memory_event(trace: Trace, name: str = ALLOCATION_EVENT) -> Bool:
    """Return bool[n]: allocations and releases, or the events of another name."""
    named = name_mask(trace.strings, name.__eq__)
    has_name: Bool = named[trace.events.name] if named.any() else np.zeros(len(trace), np.bool_)
    return has_name


@derived
def memory_records(trace: Trace) -> MemoryRecords:
    """Return the allocations and releases that have a time."""
    return _read_records_named(trace, ALLOCATION_EVENT)


@derived
def memory_failures(trace: Trace) -> MemoryRecords:
    """Return the allocations that found no memory (`[OutOfMemory]`), with the totals at that time."""
    return _read_records_named(trace, OUT_OF_MEMORY_EVENT)


def _find_placed_rows(trace: Trace, name: str) -> Int32:
    """Return the rows of the events of this name that have a time."""
    rows = np.flatnonzero(is_memory_event(trace, name)).astype(np.int32)
    placed: Int32 = rows[trace.events.start.take(rows) != ABSENT]
    return placed


def _read_records_named(trace: Trace, name: str) -> MemoryRecords:
    rows = _find_placed_rows(trace, name)
    rows = rows[np.argsort(trace.events.start[rows], kind="stable")]
    kind, id = trace.arg_int("Device Type", rows), trace.arg_int("Device Id", rows)
    id[(kind == _CPU) | (id == ABSENT)] = -1
    devices, device = _number_distinct_pairs(kind, id)
    size, allocated, reserved = (
        trace.arg_int(key, rows) for key in ("Bytes", "Total Allocated", "Total Reserved")
    )
    address, size = trace.arg_int("Addr", rows), np.where(_is_plausible(size), size, 0)
    allocated, reserved = (np.where(_is_plausible(totals), totals, ABSENT) for totals in (allocated, reserved))
    cpu = np.flatnonzero(kind == _CPU)
    allocated[cpu], reserved[cpu] = add_mapped_memory(address[cpu], size[cpu], allocated[cpu], reserved[cpu])
    return MemoryRecords(
        devices=_build_memory_devices(trace, devices),
        rows=rows,
        time=trace.events.start[rows],
        device=device,
        address=address,
        size=size,
        allocated=allocated,
        reserved=reserved,
    )


def _is_plausible(sizes: Int64) -> Bool:
    return (sizes > -_MAX_BYTES) & (sizes < _MAX_BYTES)


def add_mapped_memory(address: Int64, size: Int64, allocated: Int64, reserved: Int64) -> tuple[Int64, Int64]:
    """Return (allocated, reserved) of the CPU's events with mapped memory counted as in use, all int64[k] bytes.

    Events are by time. Bytes that are mapped when the recording begins are known by their release. A total that is
    ABSENT stays so; mappings add to the last one that is known.
    """
    is_mapping = _is_mapping(address, size, allocated, reserved)
    if not is_mapping.any():
        return allocated, reserved
    mapped = np.cumsum(np.where(is_mapping, size, 0))
    mapped -= min(int(mapped.min()), 0)
    allocator = np.flatnonzero(~is_mapping)
    if len(allocator) == 0:
        return mapped, np.zeros_like(reserved)
    known = allocator[allocated[allocator] != ABSENT]
    if len(known) == 0:
        return np.full_like(allocated, ABSENT), np.where(is_mapping, 0, reserved)
    # The allocator's last total; before its first one, the total that it began with.
    last = np.searchsorted(known, np.arange(len(size)), "right") - 1
    initial = allocated[known[0]] - size[allocator[allocator <= known[0]]].sum()
    total = np.where(last >= 0, allocated[known[np.maximum(last, 0)]], initial) + mapped
    return np.where(~is_mapping & (allocated == ABSENT), ABSENT, total), np.where(is_mapping, 0, reserved)


def _is_mapping(address: Int64, size: Int64, allocated: Int64, reserved: Int64) -> Bool:
    """Return bool[k]: events that map or unmap; a release unmaps if a mapping was made at its address."""
    is_mapping: Bool = (reserved > 0) & (allocated == 0) & (size == reserved)
    if not is_mapping.any():
        return is_mapping
    is_mapped_at: dict[int, bool] = {}
    total = None
    rows = zip(*(column.tolist() for column in (address, size, allocated, reserved, is_mapping)), strict=True)
    for position, (where, change, in_use, held, maps) in enumerate(rows):
        if change > 0:
            is_mapped_at[where] = maps
        elif in_use == 0 and held == 0:
            # A release of something older is an unmapping if the allocator's total can't have become 0.
            is_mapping[position] = is_mapped_at.pop(where, total is not None and total + change != 0)
        if not is_mapping[position]:
            total = None if in_use == ABSENT else in_use
    return is_mapping


def _number_distinct_pairs(first: Int64, second: Int64) -> tuple[list[tuple[int, int]], Int32]:
    """Return (distinct pairs in order, code of each); after `MAX_DEVICES` the rest are one pair of ABSENT.

    There are few, so they are searched one after the other.
    """
    codes = np.full(len(first), NO_CODE, np.int32)
    pairs: list[tuple[int, int]] = []
    while (left := np.flatnonzero(codes < 0)).size:
        pair = int(first[left[0]]), int(second[left[0]])
        equal = (first == pair[0]) & (second == pair[1])
        if len(pairs) == MAX_DEVICES:
            pair, equal = (int(ABSENT), int(ABSENT)), left
        codes[equal] = len(pairs)
        pairs.append(pair)
    order = sorted(range(len(pairs)), key=pairs.__getitem__)
    rank = np.argsort(np.array(order, np.int32)).astype(np.int32)
    return [pairs[i] for i in order], rank[codes]


def _build_memory_devices(trace: Trace, keys: list[tuple[int, int]]) -> tuple[MemoryDevice, ...]:
    devices: list[MemoryDevice] = []
    for type_, id in keys:
        kind = _KINDS.get(type_, "unknown" if type_ == ABSENT else f"device type {type_}")
        vendor = device_kind(trace)
        if type_ in (_CUDA, _HIP) and vendor in ("CUDA", "ROCm", "HPU"):
            kind = vendor  # builds for ROCm and Gaudi pass their devices off as CUDA's or as each other's
        name = _memory_device_name(kind, id)
        if any(device.name == name for device in devices):
            name = f"{name} (device type {type_})"
        info = describe_device(trace, id) if type_ != _CPU else None
        hardware, capacity = (None, None) if info is None else (info.name, info.memory_bytes)
        devices.append(MemoryDevice(name, kind, id, hardware, capacity))
    return tuple(devices)


def _memory_device_name(kind: str, id: int) -> str:
    if kind == "CPU":
        return "CPU"
    if kind in _KINDS.values() and kind != "PrivateUse1":
        return device_name(kind, id if id >= 0 else "").strip()
    return f"{kind}:{id}" if id >= 0 else kind


@derived
def memory_calls(trace: Trace) -> Int32:
    """Return int32[k]: the row of the innermost operator call around each record, NO_CODE if none."""
    return enclosing_calls(trace, memory_records(trace).rows)


def enclosing_calls(trace: Trace, event_rows: Int32) -> Int32:
    """Return int32[k]: the row of the innermost operator call around each memory event, NO_CODE if none."""
    rows = rows_of_kind(trace, Kind.CPU_OP)
    around = innermost_enclosing(trace, build_call_tree(trace, rows), _threads_as_in(trace, rows), event_rows)
    is_call = (around >= 0) & operator_name_mask(trace)[trace.events.name[around]]
    calls: Int32 = np.where(is_call, around, NO_CODE).astype(np.int32)
    return calls


@derived
def memory_operators(trace: Trace) -> Int32:
    """Return int32[k]: the position in `operators(trace).rows` of the operator of each record, NO_CODE if none."""
    calls = memory_calls(trace)
    owners: Int32 = np.where(calls >= 0, operators(trace).owner[calls], NO_CODE).astype(np.int32)
    return owners


def _threads_as_in(trace: Trace, rows: Int32) -> Int32:
    """Return int32[n]: the thread of each event, by the code that `rows` use for it.

    Before PyTorch 1.10 operators recorded their thread as text, memory events as a number.
    """
    codes = np.arange(len(trace.threads), dtype=np.int32)
    texts = [(str(thread.pid), str(thread.tid)) for thread in trace.threads]
    code_in_rows = {texts[code]: code for code in distinct_codes(trace.events.thread[rows])}
    for code, text in enumerate(texts):
        codes[code] = code_in_rows.get(text, code)
    threads: Int32 = codes[trace.events.thread]
    return threads


@derived
def memory_names(trace: Trace) -> tuple[Int32, list[str]]:
    """Return (int32[k] codes, names) of what allocated each record; NO_CODE outside operators.

    The name is that of the operator. Operators that only provide memory (`aten::empty`, `aten::empty_strided`,
    ...) are named with the operator or annotation around them, except steps: "aten::zeros (aten::empty)".
    """
    calls, count = memory_calls(trace), len(trace.strings) + 1
    name = np.where(calls >= 0, trace.events.name[calls], NO_CODE).astype(np.int64)
    providers = [
        code for code in distinct_codes(name.astype(np.int32)) if trace.strings[code].startswith(_PROVIDERS)
    ]
    # A key is (number of the provider, from 1; 0 for none) * count + name of the outer call.
    key = name
    for number, code in enumerate(providers, 1):
        records = np.flatnonzero(name == code)
        provider_calls, position = np.unique(calls[records], return_inverse=True)
        outer = _find_enclosing_named_calls(trace, provider_calls)[position]
        key[records[outer >= 0]] = number * count + trace.events.name[outer[outer >= 0]]
    is_used = np.zeros((len(providers) + 1) * count + 1, np.bool_)
    is_used[key] = True  # NO_CODE sets the last cell
    is_used[-1] = False
    codes = np.where(key >= 0, np.cumsum(is_used)[key] - 1, NO_CODE).astype(np.int32)
    names = []
    for number, code in (divmod(value, count) for value in np.flatnonzero(is_used).tolist()):
        text = trace.strings[code] if code < count - 1 else ""
        names.append(f"{text} ({trace.strings[providers[number - 1]]})" if number else text)
    return codes, names


def _find_enclosing_named_calls(trace: Trace, rows: Int32) -> Int32:
    """Return the innermost operator or annotation around each of these calls, other than a step."""
    parent = call_tree(trace).parent
    is_named = np.isin(event_kinds(trace), (Kind.CPU_OP, Kind.ANNOTATION))
    is_named &= ~name_mask(trace.strings, is_step)[trace.events.name]
    above = parent[rows]
    while (climbs := (above >= 0) & ~is_named[above]).any():
        above[climbs] = parent[above[climbs]]
    return above
