"""Matrix products that could run faster: in float32 while Tensor Cores idle, or in the wrong kernels on them.

Kernels are wrong that are for unaligned operands, or for an older device.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from torch_tb_profiler.analyses.overview.device_rules import compute_capability
from torch_tb_profiler.analyses.overview.finding import Finding, is_too_short
from torch_tb_profiler.analyses.overview.kernel_rules.excess import (
    other_device_work,
    parse_input_shapes,
    recorded_shapes,
    times_after_share,
)
from torch_tb_profiler.analyses.shared.attainable import are_memory_bound, owning_calls, roofline_shares
from torch_tb_profiler.analyses.shared.grouping import input_shape_codes
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.devices import DeviceInfo, devices
from torch_tb_profiler.model.kernels.families import FAMILIES, family_codes
from torch_tb_profiler.model.kernels.identifiers import parse_identifiers
from torch_tb_profiler.model.kernels.short_names import (
    alignment,
    gpu_architecture,
    number_type,
    product_type,
)
from torch_tb_profiler.model.kernels.tensor_cores import TC_NO, TC_YES, are_eligible, uses_tensor_cores
from torch_tb_profiler.model.kinds import Kind, event_kinds
from torch_tb_profiler.model.origins.replays import replayed_mask
from torch_tb_profiler.model.trace import Bool, Int32, Trace, distinct_codes
from torch_tb_profiler.model.work.operator_work import operator_work

LOAD_BYTES = 16
"""Bytes of the widest load of a thread, which kernels for aligned operands use."""

NATIVE_CAPABILITIES = (8, 9, 10)
"""Major compute capabilities with kernels of their own in NVIDIA's libraries."""

_WIDTHS = {"bf16": 2, "fp16": 2, "tf32": 4, "fp32": 4, "fp64": 8, "int8": 1, "fp8": 1}
_GENERATIONS = {"maxwell": 5, "pascal": 6, "volta": 7, "turing": 7, "ampere": 8, "hopper": 9}


MIN_UNIT_SHARE = 0.1
"""A product that reaches less than this share of its roofline is too small or too short for its unit to matter."""

MIN_REPLAYED_NS = 20_000
"""A shorter product whose FLOPs are unknown may be too small for its unit to matter, ns: as a router's."""

TENSOR_CORE_MULTIPLES = {"tf32": 4, "fp16": 8}
"""Sizes of matrices that Tensor Cores take as they are: multiples of 16 bytes."""

_NAMES_WITHOUT_TENSOR_CORES = ("GTX 16", "MX450", "MX550")


def find_missing_mixed_precision(trace: Trace) -> Iterator[Finding]:
    """Find matrix products in float32 that idle Tensor Cores could run faster.

    What goes is their time beyond the roofline with Tensor Cores. Products bound by memory as they are have none,
    however slow: another unit moves no fewer bytes. Those far below the roofline that they have now are too small
    for any unit, and have none either. Where the FLOPs or the peaks are unknown, it may be all of their time: so
    it is of products that a graph replays, which only the names of their kernels show.
    """
    capable = [device for device in devices(trace) if device.kind == "CUDA" and _has_tensor_cores(device)]
    if len(capable) < len(devices(trace)) or not capable:
        return
    links = device_links(trace)
    candidates = np.flatnonzero(uses_tensor_cores(trace).take(links.rows) == TC_NO)
    candidates = candidates[event_kinds(trace).take(links.rows[candidates]) == Kind.KERNEL]
    operators, replayed = links.operator[candidates], replayed_mask(trace)[candidates]
    named = (operators >= 0) & are_eligible(trace, operators)
    named[named] = _in_float32(trace, operators[named])
    if replayed.any():
        replayed[replayed] = _are_float32_products(trace, links.rows[candidates[replayed]])
    idle_cores = np.flatnonzero(named | replayed)
    mine, operators, named = links.rows[candidates[idle_cores]], operators[idle_cores], named[idle_cores]
    case: Literal["tf32", "fp16"] = "tf32" if min(map(compute_capability, capable)) >= (8, 0) else "fp16"
    has_gain = ~(roofline_shares(trace, mine) < MIN_UNIT_SHARE) & ~are_memory_bound(trace, mine)
    mine, operators, named = mine[has_gain], operators[has_gain], named[has_gain]
    if len(mine) == 0:
        return
    then = roofline_shares(trace, mine, case)
    during = times_after_share(trace, mine, np.nan_to_num(then))
    if is_too_short(trace, during):
        return
    unknown = float(trace.events.duration[mine][np.isnan(then)].sum() / max(trace.events.duration[mine].sum(), 1))
    yield Finding(
        "mixed_precision",
        during,
        other_device_work(trace, mine),
        mine,
        on_device=True,
        case=case,
        place=_find_unaligned_shapes(trace, mine[named], operators[named], TENSOR_CORE_MULTIPLES[case]),
        value=unknown or None,
        event=int(mine[np.argmax(trace.events.duration[mine])]),
    )


def _are_float32_products(trace: Trace, rows: Int32) -> Bool:
    """Return bool[k]: kernels whose names say that they multiply matrices, not vectors, in float32; long ones."""
    product = family_codes(trace)[rows] == FAMILIES.index("matrix product")
    product &= trace.events.duration[rows] >= MIN_REPLAYED_NS
    float32 = np.zeros(len(trace.strings) + 1, np.bool_)
    for code in distinct_codes(trace.events.name[rows[product]]):
        name = trace.strings[code]
        float32[code] = product_type(path_and_arguments(name)) == "fp32" and "gemv" not in name.lower()
    mask: Bool = product & float32[trace.events.name[rows]]
    return mask


def _find_unaligned_shapes(trace: Trace, rows: Int32, operators: Int32, multiple: int) -> str:
    """Return the input shapes of the longest product with a size that is no multiple, "" if none has one."""
    calls = operators[np.argsort(-trace.events.duration[rows], kind="stable")]
    if not operator_work(trace).owners.captures:  # of equal shapes one is enough; a capture has shapes of its own
        _, first = np.unique(input_shape_codes(trace)[calls], return_index=True)
        calls = calls[np.sort(first)]
    for row in calls.tolist():
        shapes = parse_input_shapes(trace, row)
        if any(size % multiple for shape in shapes if len(shape) > 1 for size in shape[-2:]):
            return recorded_shapes(trace, row)
    return ""


def _has_tensor_cores(device: DeviceInfo) -> bool:
    name = device.name or ""
    return compute_capability(device) >= (7, 0) and not any(part in name for part in _NAMES_WITHOUT_TENSOR_CORES)


def _in_float32(trace: Trace, operators: Int32) -> np.ndarray:
    """Return bool[k]: whether the inputs are float32, or their types aren't recorded."""
    codes, texts = trace.arg_codes("Input type", operators)
    other_type = [any(name in text for name in ("Half", "BFloat16", "double", "int", "Float8")) for text in texts]
    is_float32: np.ndarray = ~np.array([*other_type, False], np.bool_)[codes]
    return is_float32


def find_slow_products(trace: Trace) -> Iterator[Finding]:
    """Find products on Tensor Cores in kernels for unaligned operands or an older device.

    What goes is their time beyond the roofline, where that is known.
    """
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
        yield Finding(
            "slow_products",
            times_after_share(trace, mine, share[which]),
            other_device_work(trace, mine),
            mine,
            on_device=True,
            case=case,
            subject=trace.strings[trace.events.name[longest]],
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
    work, call = operator_work(trace), owning_calls(trace, rows)
    odd: dict[tuple[int, int], bool] = {}
    unaligned = np.zeros(len(rows), np.bool_)
    for i in np.flatnonzero(wanted).tolist():
        size, signature = int(wanted[i]), int(work.signature[call[i]])
        if (signature, size) not in odd:
            shapes = parse_input_shapes(trace, int(work.owners.calls[call[i]]))
            odd[signature, size] = any(n % size for shape in shapes if len(shape) > 1 for n in shape[-2:])
        unaligned[i] = odd[signature, size]
    return unaligned


def _use_old_kernels_only(trace: Trace, rows: Int32) -> bool:
    """Return whether no product runs in a kernel made for the device: the library seems to have none."""
    majors = {int((each.compute_capability or "0").partition(".")[0]) for each in devices(trace)}
    if len(majors) != 1 or not majors <= set(NATIVE_CAPABILITIES) or len(rows) == 0:
        return False
    generations = [_parse_generation(trace.strings[code]) for code in distinct_codes(trace.events.name[rows])]
    return 0 < min(generations) and max(generations) < majors.pop()


def _parse_generation(name: str) -> int:
    """Return the major compute capability that a kernel was compiled for, 0 if its name doesn't say."""
    spelled = gpu_architecture(path_and_arguments(name))
    if spelled.startswith("sm"):
        return int(spelled[2:-1])  # sm90: the last digit is the minor one
    return _GENERATIONS.get(spelled, 0)


def path_and_arguments(name: str) -> str:
    """Return what a kernel's name says of its code and its types, without the types of its parameters."""
    parts = parse_identifiers(name)
    return f"{parts.path} {parts.arguments}"
