"""Estimate how similar two recordings are without opening them, from a small sketch of the names in each."""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

import msgspec

if TYPE_CHECKING:
    from torch_tb_profiler.model.trace import Trace

SKETCH_HASHES = 128
"""Number of hashes in a sketch; the standard error of a similarity of 0.5 is then 0.04."""


class NameSketch(msgspec.Struct, frozen=True):
    """A sketch of the names in a trace.

    names    the smallest hashes of the distinct operator names, or kernel names if no operators were recorded
    devices  device names, sorted
    """

    names: tuple[int, ...]
    devices: tuple[str, ...]


def sketch_names(trace: Trace) -> NameSketch:
    """Build the sketch of a trace, which is small enough to be stored with its summary."""
    from torch_tb_profiler.model.devices import devices
    from torch_tb_profiler.model.kinds import Kind, names_of_kind

    names = names_of_kind(trace, Kind.CPU_OP) or names_of_kind(trace, Kind.KERNEL)
    hashes = sorted({crc32(name.encode(errors="replace")) for name in names})[:SKETCH_HASHES]
    return NameSketch(tuple(hashes), tuple(sorted(device.name or device.kind for device in devices(trace))))


def name_similarity(a: NameSketch, b: NameSketch) -> float:
    """Return the number of common names divided by the number of all names of both (Jaccard); 0 without names.

    Estimated from the smallest hashes of the union (Broder, On the resemblance and containment of documents).
    """
    union = sorted({*a.names, *b.names})[:SKETCH_HASHES]
    common = {*a.names} & {*b.names}
    return sum(name in common for name in union) / len(union) if union else 0.0
