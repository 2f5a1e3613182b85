"""Estimate how similar two recordings are without opening them, from a small sketch of the names in each."""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

import msgspec

if TYPE_CHECKING:
    from torch_tb_profiler.model.trace import Trace

SKETCH_HASHES = 128
"""Number of hashes in a sketch; the standard error of a similarity of 0.5 is then 0.04."""


GPU_KINDS = ("CUDA", "ROCm", "XPU", "other")
"""Kinds of `device_kind` whose programs are ported to each other, so that comparing them is what people want."""


class NameSketch(msgspec.Struct, frozen=True):
    """A sketch of the names in a trace.

    names    the smallest hashes of the distinct operator names, or kernel names if no operators were recorded
    devices  device names, sorted
    kind     of the devices, "GPU" for those of all makers, "" without any: kinds run no kernel of each other
    """

    names: tuple[int, ...]
    devices: tuple[str, ...]
    kind: str = ""


def sketch_names(trace: Trace) -> NameSketch:
    """Build the sketch of a trace, which is small enough to be stored with its summary."""
    from torch_tb_profiler.model.devices import device_kind, devices
    from torch_tb_profiler.model.kinds import Kind, names_of_kind

    names = names_of_kind(trace, Kind.CPU_OP) or names_of_kind(trace, Kind.KERNEL)
    hashes = sorted({crc32(name.encode(errors="replace")) for name in names})[:SKETCH_HASHES]
    used = devices(trace)
    kind = device_kind(trace) if used else ""
    names_of_devices = tuple(sorted(device.name or device.kind for device in used))
    return NameSketch(tuple(hashes), names_of_devices, "GPU" if kind in GPU_KINDS else kind)


def name_similarity(a: NameSketch, b: NameSketch) -> float:
    """Return the number of common names divided by the number of all names of both (Jaccard); 0 without names.

    Recordings of different kinds of devices have none in common: a program for one is another on the other,
    even if its operators have the same names.
    Estimated from the smallest hashes of the union (Broder, On the resemblance and containment of documents).
    """
    if a.kind and b.kind and a.kind != b.kind:
        return 0.0
    union = sorted({*a.names, *b.names})[:SKETCH_HASHES]
    common = {*a.names} & {*b.names}
    return sum(name in common for name in union) / len(union) if union else 0.0
