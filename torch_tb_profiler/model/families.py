"""The family of every kernel, copy and memset of a trace, and the short names of its kernels."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.model.communication.events import communication_kernels
from torch_tb_profiler.model.kernels.families import FAMILIES, family_of_name
from torch_tb_profiler.model.kernels.short_names import short_names
from torch_tb_profiler.model.kinds import DEVICE_KINDS, Kind, event_kinds, names_of_kind, rows_of_kind
from torch_tb_profiler.model.pair import TracePair
from torch_tb_profiler.model.trace import Bool, Int32, Trace, derived, distinct_codes

NO_FAMILY = -1
"""Of what is no work of a device."""


@derived
def family_codes(trace: Trace) -> npt.NDArray[np.int8]:
    """int8[n]: index into FAMILIES of every kernel, copy and memset; NONE of everything else.

    Copies and memsets are memory, kernels with the metadata of a collective communication; of others names tell.
    """
    kind = event_kinds(trace)
    kernel = kind == Kind.KERNEL
    by_name = np.full(len(trace.strings) + 1, FAMILIES.index("other"), np.int8)
    for code in distinct_codes(trace.events.name[kernel]):
        by_name[code] = FAMILIES.index(family_of_name(trace.strings[code]))
    family = np.where(kernel, by_name[trace.events.name], NO_FAMILY).astype(np.int8)
    family[communication_kernels(trace)] = FAMILIES.index("communication")
    family[np.isin(kind, [each for each in DEVICE_KINDS if each != Kind.KERNEL])] = FAMILIES.index("memory")
    return family


def family_mask(trace: Trace, rows: Int32, family: str) -> Bool:
    """bool[k]: which rows are device work of a family. Raises UsageError for an unknown one."""
    if family not in FAMILIES:
        raise UsageError(f"family cannot be {family!r}", hint=", ".join(FAMILIES))
    chosen: Bool = family_codes(trace)[rows] == FAMILIES.index(family)
    return chosen


def display_name(trace: Trace, row: int, name: str) -> str:
    """The name of an event as views show it: of a kernel the short one."""
    return short_kernel_names(trace).get(name, name) if event_kinds(trace)[row] == Kind.KERNEL else name


@derived
def short_kernel_names(trace: Trace) -> Mapping[str, str]:
    """The name of every kernel -> its short name, which no other kernel of the trace has."""
    return short_names(names_of_kind(trace, Kind.KERNEL))


@derived
def kernel_labels(trace: Trace) -> Mapping[int, str]:
    """Code -> short name, of the names that only kernels have: a code does not tell kernel and operator apart."""
    kernel, name = event_kinds(trace) == Kind.KERNEL, trace.events.name
    elsewhere = np.zeros(len(trace.strings) + 1, np.bool_)
    elsewhere[name[~kernel]] = True
    short = short_kernel_names(trace)
    return {code: short[trace.strings[code]] for code in distinct_codes(name[kernel]) if not elsewhere[code]}


def short_kernel_names_of_pair(pair: TracePair) -> Mapping[str, str]:
    """The name of every kernel of two sides -> its short name, which no other kernel of either side has."""
    return short_names(
        name for trace in (*pair.base, *pair.candidate) for name in names_of_kind(trace, Kind.KERNEL)
    )


def kernel_families_of_pair(pair: TracePair) -> Mapping[str, str]:
    """The name of every kernel of two sides -> its family, that of its first launch."""
    by_name: dict[str, str] = {}
    for trace in (*pair.base, *pair.candidate):
        rows = rows_of_kind(trace, Kind.KERNEL)
        codes, first = np.unique(trace.events.name[rows], return_index=True)
        numbers = family_codes(trace)[rows[first]]
        for code, number in zip(codes.tolist(), numbers.tolist(), strict=True):
            by_name.setdefault(trace.strings[code] if code >= 0 else "", FAMILIES[number])
    return by_name
