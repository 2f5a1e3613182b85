"""Matrix products on Tensor Cores in kernels for unaligned operands, or for an older device."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from torch_tb_profiler.analyses.overview.finding import Finding
from torch_tb_profiler.analyses.overview.kernel_rules.excess import (
    other_device_work,
    parse_input_shapes,
    recorded_shapes,
    times_after_share,
)
from torch_tb_profiler.analyses.shared.attainable import owning_calls, roofline_shares
from torch_tb_profiler.model.devices import devices
from torch_tb_profiler.model.kernels.families import FAMILIES, family_codes
from torch_tb_profiler.model.kernels.identifiers import parse_identifiers
from torch_tb_profiler.model.kernels.short_names import (
    alignment,
    gpu_architecture,
    number_type,
    short_kernel_names,
)
from torch_tb_profiler.model.kernels.tensor_cores import TC_YES, uses_tensor_cores
from torch_tb_profiler.model.trace import Bool, Int32, Trace, distinct_codes
from torch_tb_profiler.model.work.operator_work import operator_work

LOAD_BYTES = 16
"""Bytes of the widest load of a thread, which kernels for aligned operands use."""

NATIVE_CAPABILITIES = (8, 9, 10)
"""Major compute capabilities with kernels of their own in NVIDIA's libraries."""

_WIDTHS = {"bf16": 2, "fp16": 2, "tf32": 4, "fp32": 4, "fp64": 8, "int8": 1, "fp8": 1}
_GENERATIONS = {"maxwell": 5, "pascal": 6, "volta": 7, "turing": 7, "ampere": 8, "hopper": 9}


def find_slow_products(trace: Trace) -> Iterator[Finding]:
    """Find the time of such kernels beyond the roofline, where that is known."""
    product = family_codes(trace) == FAMILIES.index("matrix product")
    rows = np.flatnonzero(product & (uses_tensor_cores(trace) == TC_YES)).astype(np.int32)
    older = _use_old_kernels_only(trace, rows)
    share = roofline_shares(trace, rows)
    rows, share = rows[~np.isnan(share)], share[~np.isnan(share)]
    unaligned = _unaligned_mask(trace, rows)
    for case, which in (("alignment", unaligned), ("older", ~unaligned & older)):
        mine = rows[which]
        if len(mine) == 0:
            continue
        longest = int(mine[np.argmax(trace.events.duration[mine])])
        name = trace.strings[trace.events.name[longest]]
        yield Finding(
            "slow_products",
            times_after_share(trace, mine, share[which]),
            other_device_work(trace, mine),
            mine,
            on_device=True,
            case=case,
            subject=short_kernel_names(trace).get(name, name),
            place=recorded_shapes(
                trace, int(operator_work(trace).owners.calls[owning_calls(trace, mine[mine == longest])[0]])
            ),
            value=len(mine),
            event=longest,
        )


def _unaligned_mask(trace: Trace, rows: Int32) -> Bool:
    """Return bool[k]: the name shows loads of less than LOAD_BYTES, and a size of the inputs is why."""
    least = np.zeros(len(trace.strings) + 1, np.int64)
    for code in distinct_codes(trace.events.name[rows]):
        text = path_and_arguments(trace.strings[code])
        width = _WIDTHS.get(number_type(text), 0)
        elements = int(alignment(text).removeprefix("align") or 0)
        if 0 < elements * width < LOAD_BYTES:
            least[code] = LOAD_BYTES // width
    wanted = least[trace.events.name[rows]]
    done, call = operator_work(trace), owning_calls(trace, rows)
    odd: dict[tuple[int, int], bool] = {}
    unaligned = np.zeros(len(rows), np.bool_)
    for i in np.flatnonzero(wanted).tolist():
        size, signature = int(wanted[i]), int(done.signature[call[i]])
        if (signature, size) not in odd:
            shapes = parse_input_shapes(trace, int(done.owners.calls[call[i]]))
            odd[signature, size] = any(n % size for shape in shapes if len(shape) > 1 for n in shape[-2:])
        unaligned[i] = odd[signature, size]
    return unaligned


def _use_old_kernels_only(trace: Trace, rows: Int32) -> bool:
    """Return whether no product runs in a kernel made for the device: the library seems to have none."""
    majors = {int((each.compute_capability or "0").partition(".")[0]) for each in devices(trace)}
    if len(majors) != 1 or not majors <= set(NATIVE_CAPABILITIES) or len(rows) == 0:
        return False
    generations = [_generation(trace.strings[code]) for code in distinct_codes(trace.events.name[rows])]
    return 0 < min(generations) and max(generations) < majors.pop()


def _generation(name: str) -> int:
    """Return the major compute capability that a kernel was compiled for, 0 if its name doesn't say."""
    spelled = gpu_architecture(path_and_arguments(name))
    number = re.fullmatch(r"sm(\d+)\d", spelled)
    return int(number[1]) if number else _GENERATIONS.get(spelled, 0)


def path_and_arguments(name: str) -> str:
    """Return what a kernel's name says of its code and its types, without the types of its parameters."""
    parts = parse_identifiers(name)
    return f"{parts.path} {parts.arguments}"
