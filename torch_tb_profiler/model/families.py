"""The family of every kernel, copy and memset of a trace, and the short names of its kernels."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.model.communication.events import communication_kernels
from torch_tb_profiler.model.kernels.families import FAMILIES, family_of_name
from torch_tb_profiler.model.kernels.short_names import short_names
from torch_tb_profiler.model.kinds import DEVICE, Kind, kinds, names_of, of_kind
from torch_tb_profiler.model.pair import Pair
from torch_tb_profiler.model.trace import Bool, Int32, Trace, derived, distinct

NONE = -1
"""Of what is no work of a device."""


@derived
def families(trace: Trace) -> npt.NDArray[np.int8]:
    """int8[n]: index into FAMILIES of every kernel, copy and memset; NONE of everything else.

    Copies and memsets are memory, kernels with the metadata of a collective communication; of others names tell.
    """
    kind = kinds(trace)
    kernel = kind == Kind.KERNEL
    by_name = np.full(len(trace.strings) + 1, FAMILIES.index("other"), np.int8)
    for code in distinct(trace.events.name[kernel]):
        by_name[code] = FAMILIES.index(family_of_name(trace.strings[code]))
    family = np.where(kernel, by_name[trace.events.name], NONE).astype(np.int8)
    family[communication_kernels(trace)] = FAMILIES.index("communication")
    family[np.isin(kind, [each for each in DEVICE if each != Kind.KERNEL])] = FAMILIES.index("memory")
    return family


def of_family(trace: Trace, rows: Int32, family: str) -> Bool:
    """bool[k]: which rows are device work of a family. Raises UsageError for an unknown one."""
    if family not in FAMILIES:
        raise UsageError(f"family cannot be {family!r}", hint=", ".join(FAMILIES))
    chosen: Bool = families(trace)[rows] == FAMILIES.index(family)
    return chosen


def shown_name(trace: Trace, row: int, name: str) -> str:
    """The name of an event as views show it: of a kernel the short one."""
    return kernel_names(trace).get(name, name) if kinds(trace)[row] == Kind.KERNEL else name


@derived
def kernel_names(trace: Trace) -> Mapping[str, str]:
    """The name of every kernel -> its short name, which no other kernel of the trace has."""
    return short_names(names_of(trace, Kind.KERNEL))


@derived
def kernel_labels(trace: Trace) -> Mapping[int, str]:
    """Code -> short name, of the names that only kernels have: a code does not tell kernel and operator apart."""
    kernel, name = kinds(trace) == Kind.KERNEL, trace.events.name
    elsewhere = np.zeros(len(trace.strings) + 1, np.bool_)
    elsewhere[name[~kernel]] = True
    short = kernel_names(trace)
    return {code: short[trace.strings[code]] for code in distinct(name[kernel]) if not elsewhere[code]}


def pair_kernel_names(pair: Pair) -> Mapping[str, str]:
    """The name of every kernel of two sides -> its short name, which no other kernel of either side has."""
    return short_names(name for trace in (*pair.base, *pair.candidate) for name in names_of(trace, Kind.KERNEL))


def pair_kernel_families(pair: Pair) -> Mapping[str, str]:
    """The name of every kernel of two sides -> its family, that of its first launch."""
    by_name: dict[str, str] = {}
    for trace in (*pair.base, *pair.candidate):
        rows = of_kind(trace, Kind.KERNEL)
        codes, first = np.unique(trace.events.name[rows], return_index=True)
        numbers = families(trace)[rows[first]]
        for code, number in zip(codes.tolist(), numbers.tolist(), strict=True):
            by_name.setdefault(trace.strings[code] if code >= 0 else "", FAMILIES[number])
    return by_name
