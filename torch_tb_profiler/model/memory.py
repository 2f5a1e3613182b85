"""What the allocators said: the `[memory]` events as columns, and the devices they speak of.

    time  device  address  size   allocated  reserved
      10  GPU0      0x100   512         512      2048      an allocation
      30  GPU0      0x100  -512           0      2048      its release

The totals of a record are those after it. A record belongs to the innermost operator that runs on its thread at
that instant, whatever Python frames or runtime calls lie between.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from torch_tb_profiler.model.calltree import call_tree, tree_of
from torch_tb_profiler.model.devices import describe, device_kind
from torch_tb_profiler.model.enclosing import innermost
from torch_tb_profiler.model.kinds import Kind, kinds, of_kind
from torch_tb_profiler.model.operators import operators
from torch_tb_profiler.model.steps import is_step_name
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Int32, Int64, Trace, derived

EVENT_NAME = "[memory]"

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


@dataclass(frozen=True)
class MemoryDevice:
    """A device with memory events; `name` is unique in the trace ("CPU", "GPU0", "XPU1", ...).

    hardware, capacity  of the card, None where the file does not say
    """

    name: str
    kind: str
    id: int
    hardware: str | None
    capacity: int | None


@dataclass(frozen=True)
class MemoryRecords:
    """Memory events by time, in file order where times are equal; columns of length k.

    rows       int32  their rows in the trace
    time       int64  ns
    device     int32  index into `devices`: the CPU, then the others by kind and id
    address    int64  ABSENT where the file has none
    size       int64  bytes: positive of an allocation, negative of a release; 0 where the file has none
    allocated  int64  bytes in use on the device after the event; reserved: held by its allocator; else ABSENT
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


def is_memory(trace: Trace) -> Bool:
    """bool[n]: events of the allocators."""
    named = np.array([text == EVENT_NAME for text in trace.strings] + [False])
    found: Bool = named[trace.events.name]
    return found


@derived
def memory_records(trace: Trace) -> MemoryRecords:
    """The memory events that have a time."""
    rows = np.flatnonzero(is_memory(trace) & (trace.events.start != ABSENT)).astype(np.int32)
    rows = rows[np.argsort(trace.events.start[rows], kind="stable")]
    kind, id = trace.arg_int("Device Type")[rows], trace.arg_int("Device Id")[rows]
    id[(kind == _CPU) | (id == ABSENT)] = -1
    keys, device = np.unique(np.stack([kind, id]), axis=1, return_inverse=True)
    size = trace.arg_int("Bytes")[rows]
    return MemoryRecords(
        devices=_devices(trace, [(int(kind), int(id)) for kind, id in keys.T]),
        rows=rows,
        time=trace.events.start[rows],
        device=device.reshape(-1).astype(np.int32),
        address=trace.arg_int("Addr")[rows],
        size=np.where(size == ABSENT, 0, size),
        allocated=trace.arg_int("Total Allocated")[rows],
        reserved=trace.arg_int("Total Reserved")[rows],
    )


def _devices(trace: Trace, keys: list[tuple[int, int]]) -> tuple[MemoryDevice, ...]:
    made: list[MemoryDevice] = []
    for type_, id in keys:
        kind = _KINDS.get(type_, "unknown" if type_ == ABSENT else f"device type {type_}")
        told = device_kind(trace)
        if type_ in (_CUDA, _HIP) and told in ("CUDA", "ROCm", "HPU"):
            kind = told  # builds for ROCm and Gaudi pass their devices off as CUDA's or as each other's
        name = _name(kind, id)
        if any(device.name == name for device in made):
            name = f"{name} (device type {type_})"
        info = describe(trace, id) if type_ != _CPU else None
        hardware, capacity = (None, None) if info is None else (info.name, info.memory_bytes)
        made.append(MemoryDevice(name, kind, id, hardware, capacity))
    return tuple(made)


def _name(kind: str, id: int) -> str:
    if kind == "CPU":
        return "CPU"
    number = str(id) if id >= 0 else ""
    if kind in ("CUDA", "ROCm"):
        return f"GPU{number}"
    return f"{kind}:{number}" if kind[-1].isdigit() else f"{kind}{number}"


@derived
def memory_operators(trace: Trace) -> Int32:
    """int32[k]: for each record the position in `operators(trace).rows` of its operator, NO_CODE for none."""
    rows = of_kind(trace, Kind.CPU_OP)
    around = innermost(trace, tree_of(trace, rows), _threads_of(trace, rows))[memory_records(trace).rows]
    found: Int32 = np.where(around >= 0, operators(trace).owner[around], NO_CODE).astype(np.int32)
    return found


def _threads_of(trace: Trace, rows: Int32) -> Int32:
    """int32[n]: thread of each event, spelled as these rows spell it.

    Before PyTorch 1.10 operators gave their thread as text, memory events as a number.
    """
    codes = np.arange(len(trace.threads), dtype=np.int32)
    spelled = [(str(thread.pid), str(thread.tid)) for thread in trace.threads]
    used = {spelled[code]: code for code in np.unique(trace.events.thread[rows]).tolist()}
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
    own = operators(trace).rows
    outer = _around(trace, own)
    provides = np.array([text.startswith("aten::empty") for text in trace.strings] + [False])
    name = trace.events.name[own].astype(np.int64)
    outer_name = np.where((outer >= 0) & provides[name], trace.events.name[outer], NO_CODE)
    mine = memory_operators(trace)
    key = np.where(mine >= 0, name[mine] * (len(trace.strings) + 1) + outer_name[mine] + 1, NO_CODE)
    distinct, codes = np.unique(key, return_inverse=True)
    texts = [_spelled(trace, *divmod(each, len(trace.strings) + 1)) for each in distinct.tolist() if each >= 0]
    outside = len(distinct) - len(texts)
    return (codes.reshape(-1) - outside).astype(np.int32), texts


def _around(trace: Trace, rows: Int32) -> Int32:
    """The innermost operator or annotation around each of these calls; steps are none."""
    parent = call_tree(trace).parent
    named = np.isin(kinds(trace), (Kind.CPU_OP, Kind.ANNOTATION)) & ~is_step_name(trace)[trace.events.name]
    above = parent[rows]
    while (seeks := (above >= 0) & ~named[above]).any():
        above[seeks] = parent[above[seeks]]
    return above


def _spelled(trace: Trace, name: int, outer: int) -> str:
    own = trace.strings[name]
    return f"{trace.strings[outer - 1]} ({own})" if outer else own
