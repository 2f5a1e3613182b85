"""How alike two recordings are, told without opening them: from a sketch of the names in each."""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

import msgspec

if TYPE_CHECKING:
    from torch_tb_profiler.model.trace import Trace

SKETCH = 128
"""So many hashes are kept; the error of a share of 0.5 is then 0.04."""


class Sketch(msgspec.Struct, frozen=True):
    """names: the smallest hashes of the distinct names of operators, or of kernels where none are recorded;
    devices: their names, in order."""

    names: tuple[int, ...]
    devices: tuple[str, ...]


def sketch(trace: Trace) -> Sketch:
    """Of a trace, small enough to be kept beside it."""
    from torch_tb_profiler.model.devices import devices
    from torch_tb_profiler.model.kinds import Kind, names_of_kind

    names = names_of_kind(trace, Kind.CPU_OP) or names_of_kind(trace, Kind.KERNEL)
    hashes = sorted({crc32(name.encode(errors="replace")) for name in names})[:SKETCH]
    return Sketch(tuple(hashes), tuple(sorted(device.name or device.kind for device in devices(trace))))


def common_names(one: Sketch, other: Sketch) -> float:
    """Names that both have over names that either has; 0 if there are none.

    Estimated from the smallest hashes of the union (Broder, On the resemblance and containment of documents).
    """
    union = sorted({*one.names, *other.names})[:SKETCH]
    both = {*one.names} & {*other.names}
    return sum(each in both for each in union) / len(union) if union else 0.0
