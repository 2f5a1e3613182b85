"""The accelerators of a trace: which did work, what they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from torch_tb_profiler.model.kinds import DEVICE_KINDS, Kind, names_of_kind, rows_of_kind
from torch_tb_profiler.model.trace import ABSENT, Int64, Trace, derived
from torch_tb_profiler.model.vendors import ascend, gaudi


class DeviceInfo(msgspec.Struct, frozen=True):
    """One device that did work; None where the file does not say.

    Of an Intel GPU the file counts vector engines (`maxComputeUnits`), several of which make one core: they are no
    multiprocessors.
    """

    id: int
    kind: str
    name: str | None
    memory_bytes: int | None
    compute_capability: str | None
    multiprocessors: int | None


@derived
def device_ids(trace: Trace) -> Int64:
    """int64[n]: device id of every event: arg `device`, else by the pid of device work; ABSENT elsewhere."""
    device = trace.arg_int("device")
    rows = rows_of_kind(trace, *DEVICE_KINDS)
    known = ascend.device_numbers(trace)[trace.events.thread]
    device[known != ABSENT] = known[known != ABSENT]
    missing = rows[device[rows] == ABSENT]
    if len(missing):
        pids = np.array([_number(thread.pid) for thread in trace.threads] + [int(ABSENT)], np.int64)
        device[missing] = pids[trace.events.thread[missing]]
    return device


@derived
def stream_ids(trace: Trace) -> Int64:
    """int64[n]: stream of device work: arg `stream`, else the tid; ABSENT elsewhere. Stream 0 is valid."""
    stream = trace.arg_int("stream")
    rows = rows_of_kind(trace, *DEVICE_KINDS)
    missing = rows[stream[rows] == ABSENT]
    if len(missing):
        tids = np.array([_number(thread.tid) for thread in trace.threads] + [int(ABSENT)], np.int64)
        stream[missing] = tids[trace.events.thread[missing]]
    return stream


def _number(value: int | str | None) -> int:
    if isinstance(value, int):
        return value if abs(value) < 2**63 else int(ABSENT)
    digits = "".join(c for c in value or "" if c.isdigit())
    return int(digits) if digits and len(digits) < 19 else int(ABSENT)


_OWN_NAMES = frozenset(("XPU", "HPU", "NPU", "MTIA", "MPS", "MAIA", "XLA", "IPU"))


def device_name(kind: str, id: int | str) -> str:
    """What a device is called wherever people read it: "GPU 0", "HPU 1"; `kind` as in `device_kind`."""
    return f"{kind if kind in _OWN_NAMES else 'GPU'} {id}"


@derived
def devices(trace: Trace) -> tuple[DeviceInfo, ...]:
    """Devices with work in this trace, by id; properties are found by `id`, not by position."""
    rows = rows_of_kind(trace, *DEVICE_KINDS)
    used = device_ids(trace)[rows]
    kind = device_kind(trace)
    properties = _properties(trace.metadata)
    return tuple(_describe(int(id), kind, properties.get(int(id))) for id in np.unique(used[used != ABSENT]))


def describe_device(trace: Trace, id: int) -> DeviceInfo | None:
    """What the file says of a device, whether it worked or not: of the card with this id, else of all if alike.

    (Where a process sees some cards only, its allocator numbers them from 0 and the file as the machine does.)
    """
    kind, properties = device_kind(trace), _properties(trace.metadata)
    if id in properties:
        return _describe(id, kind, properties[id])
    alike = {_describe(id, kind, entry) for entry in properties.values()}
    return alike.pop() if len(alike) == 1 else None


def _properties(metadata: Mapping[str, Any]) -> dict[int, Mapping[str, Any]]:
    listed = metadata.get("deviceProperties") or metadata.get("computeProperties") or []
    if isinstance(listed, Mapping):
        listed = [listed]
    by_id: dict[int, Mapping[str, Any]] = {}
    if isinstance(listed, list):
        for position, entry in enumerate(listed):
            if isinstance(entry, Mapping):
                id = entry.get("id", position)
                if isinstance(id, int):
                    by_id.setdefault(id, entry)
    return by_id


def _describe(id: int, kind: str, entry: Mapping[str, Any] | None) -> DeviceInfo:
    entry = entry or {}
    name = entry.get("name")
    major, minor = (
        entry.get("computeMajor", entry.get("major")),
        entry.get("computeMinor", entry.get("minor")),
    )
    return DeviceInfo(
        id=id,
        kind=kind,
        name=name if isinstance(name, str) and name and name != "N/A" else None,
        memory_bytes=_positive(entry.get("totalGlobalMem")),
        compute_capability=f"{major}.{minor}" if isinstance(major, int) and isinstance(minor, int) else None,
        multiprocessors=_positive(entry.get("numSms", entry.get("multiProcessorCount"))),
    )


def _positive(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


@derived
def device_kind(trace: Trace) -> str:
    """CUDA, ROCm, XPU, HPU, NPU, MTIA or other; from categories, metadata, processes and names of calls."""
    categories = {text.lower() for text in trace.strings}
    for prefix, kind in (("xpu_", "XPU"), ("mtia_", "MTIA"), ("hpu_", "HPU"), ("glow_", "MTIA")):
        if any(text.startswith(prefix) for text in categories & _VENDOR_CATEGORIES):
            return kind
    if (gaudi.thread_engines(trace) >= 0).any():
        return "HPU"
    if ascend.is_ascend(trace):
        return "NPU"
    keys = trace.metadata.keys()
    if any(key.startswith(("hip_", "roctracer", "rocprofiler")) for key in keys) or "hsa_queue" in trace.args:
        return "ROCm"
    names = names_of_kind(trace, Kind.RUNTIME, Kind.DRIVER)
    if any(name.startswith("hip") for name in names):
        return "ROCm"
    cuda_args = {"blocks per SM", "registers per thread", "context"} & trace.args.keys()
    if any(name.startswith(("cuda", "cu")) for name in names) or cuda_args or any("cuda" in key for key in keys):
        return "CUDA"
    return "other"


_VENDOR_CATEGORIES = {
    "xpu_runtime", "xpu_driver", "xpu_sync", "mtia_runtime", "mtia_ccp_events", "mtia_insight",
    "mtia_counters", "hpu_op", "glow_runtime",
}  # fmt: skip
