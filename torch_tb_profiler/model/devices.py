"""The accelerators of a trace, and what their kernels and copies record: device, stream, bytes, metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from torch_tb_profiler.base.arrays import distinct_numbers
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.kinds import DEVICE_KINDS, Kind, names_of_kind, rows_of_kind
from torch_tb_profiler.model.trace import ABSENT, Bool, Int32, Int64, Trace
from torch_tb_profiler.model.vendors import ascend, gaudi


class DeviceInfo(msgspec.Struct, frozen=True):
    """A device that did work; None where the file doesn't say.

    Intel's `maxComputeUnits` counts vector engines, several to a core, so it isn't used for `multiprocessors`.
    """

    id: int
    kind: str
    name: str | None
    memory_bytes: int | None
    compute_capability: str | None
    multiprocessors: int | None


ORIGINAL_STREAM = "original_stream"
"""Stream that work of a CUDA graph ran on, where PyTorch 2.15 draws it on a lane of its own."""


@derived
def device_ids(trace: Trace) -> Int64:
    """Return the device of every event, int64[n]: argument `device`, else the pid of device work, else ABSENT."""
    device = trace.arg_int("device")
    rows = rows_of_kind(trace, *DEVICE_KINDS)
    of_threads = ascend.device_numbers(trace)
    if (of_threads != ABSENT).any():
        known = of_threads[trace.events.thread]
        device[known != ABSENT] = known[known != ABSENT]
    missing = rows[device[rows] == ABSENT]
    if len(missing):
        pids = np.array([_number_in(thread.pid) for thread in trace.threads] + [int(ABSENT)], np.int64)
        device[missing] = pids[trace.events.thread[missing]]
    return device


@derived
def stream_ids(trace: Trace) -> Int64:
    """Return the stream of device work, int64[n]: argument `stream`, else the tid; ABSENT for other events.

    0 is a valid stream. Work of a CUDA graph that was drawn on another lane has the stream that it ran on, so that
    the order of a stream is that of the hardware.
    """
    stream = trace.arg_int("stream")
    rows = rows_of_kind(trace, *DEVICE_KINDS)
    missing = rows[stream[rows] == ABSENT]
    if len(missing):
        tids = np.array([_number_in(thread.tid) for thread in trace.threads] + [int(ABSENT)], np.int64)
        stream[missing] = tids[trace.events.thread[missing]]
    if ORIGINAL_STREAM in trace.args:
        original = trace.arg_int(ORIGINAL_STREAM)
        stream = np.where(original != ABSENT, original, stream)
    return stream


def graph_lanes(trace: Trace) -> Bool:
    """Return which threads are lanes that PyTorch moved work of CUDA graphs to, bool[threads + 1].

    The last entry, for NO_CODE, is False.
    """
    lanes = np.zeros(len(trace.threads) + 1, np.bool_)
    if (column := trace.args.get(ORIGINAL_STREAM)) is not None:
        lanes[trace.events.thread[column.rows]] = True
    return lanes


def _number_in(value: int | str | None) -> int:
    if isinstance(value, int):
        return value if abs(value) < 2**63 else int(ABSENT)
    digits = "".join(c for c in value or "" if c.isdigit())
    return int(digits) if digits and len(digits) < 19 else int(ABSENT)


_NAMED_KINDS = frozenset(("XPU", "HPU", "NPU", "MTIA", "MPS", "MAIA", "XLA", "IPU"))


def device_name(kind: str, id: int | str) -> str:
    """Return the name that people read, such as "GPU 0" or "HPU 1", for a `kind` of `device_kind`."""
    return f"{kind if kind in _NAMED_KINDS else 'GPU'} {id}"


@derived
def devices(trace: Trace) -> tuple[DeviceInfo, ...]:
    """Return the devices with work in this trace, by id."""
    rows = rows_of_kind(trace, *DEVICE_KINDS)
    used = device_ids(trace)[rows]
    kind = device_kind(trace)
    properties = _read_properties(trace.metadata)
    return tuple(_describe(id, kind, properties.get(id)) for id in distinct_numbers(used[used != ABSENT]))


def describe_device(trace: Trace, id: int) -> DeviceInfo | None:
    """Return what the file says about device `id`, with or without work; if it has no such id, about all if equal.

    A process that sees only some of a machine's devices numbers them from 0 in its allocator, while the file
    numbers them as the machine does.
    """
    kind, properties = device_kind(trace), _read_properties(trace.metadata)
    if id in properties:
        return _describe(id, kind, properties[id])
    distinct = {_describe(id, kind, entry) for entry in properties.values()}
    return distinct.pop() if len(distinct) == 1 else None


def _read_properties(metadata: Mapping[str, Any]) -> dict[int, Mapping[str, Any]]:
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


_VENDOR_CATEGORIES = {
    "xpu_runtime", "xpu_driver", "xpu_sync", "mtia_runtime", "mtia_ccp_events", "mtia_insight",
    "mtia_counters", "hpu_op", "glow_runtime",
}  # fmt: skip


@derived
def device_kind(trace: Trace) -> str:
    """Return CUDA, ROCm, XPU, HPU, NPU, MTIA, or other, from categories, metadata, processes, and call names."""
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


def moved_bytes(trace: Trace, rows: Int32) -> Int64:
    """Return the bytes of copies and memsets, int64[k]: argument `bytes`, or `size` on MTIA, or ABSENT."""
    size = trace.arg_int("bytes", rows)
    return np.where(size == ABSENT, trace.arg_int("size", rows), size)


def copy_directions(trace: Trace, rows: Int32) -> tuple[Int32, Sequence[str]]:
    """Return the argument `direction` ("DEVICE_TO_HOST") of MTIA's copies as codes, int32[k], and their texts.

    CUDA, ROCm, and XPU spell the direction in the copy's name instead.
    """
    return trace.arg_codes("direction", rows)


@derived
def kernel_metric_rows(trace: Trace) -> dict[int, int]:
    """Return the row of the slice with a kernel's hardware metrics, by the row of the kernel.

    Intel's scope profiler records the metrics in a slice of their own, with the kernel's `kernel_id`.
    """
    rows = rows_of_kind(trace, Kind.METRICS)
    if len(rows) == 0:
        return {}
    slices = dict(zip(trace.arg_int("kernel_id", rows).tolist(), rows.tolist(), strict=True))
    slices.pop(int(ABSENT), None)
    kernels = rows_of_kind(trace, Kind.KERNEL)
    ids = trace.arg_int("kernel_id", kernels).tolist()
    return {row: slices[id] for row, id in zip(kernels.tolist(), ids, strict=True) if id in slices}
