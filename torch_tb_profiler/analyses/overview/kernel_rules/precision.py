"""Matrix products in float32 that idle Tensor Cores could run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from torch_tb_profiler.analyses.overview.device_rules import compute_capability
from torch_tb_profiler.analyses.overview.finding import Finding
from torch_tb_profiler.analyses.overview.kernel_rules.excess import (
    other_device_work,
    parse_input_shapes,
    recorded_shapes,
    times_after_share,
)
from torch_tb_profiler.analyses.overview.kernel_rules.products import path_and_arguments
from torch_tb_profiler.analyses.shared.attainable import are_memory_bound, roofline_shares
from torch_tb_profiler.analyses.shared.grouping import input_shape_codes
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.devices import DeviceInfo, devices
from torch_tb_profiler.model.kernels.families import FAMILIES, family_codes
from torch_tb_profiler.model.kernels.short_names import product_type
from torch_tb_profiler.model.kernels.tensor_cores import TC_NO, eligible_operators, uses_tensor_cores
from torch_tb_profiler.model.kinds import Kind, event_kinds
from torch_tb_profiler.model.origins.replays import replayed_mask
from torch_tb_profiler.model.trace import Bool, Int32, Trace, distinct_codes
from torch_tb_profiler.model.work.operator_work import operator_work

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
    candidates = event_kinds(trace)[links.rows] == Kind.KERNEL
    rows, operators = links.rows[candidates], links.operator[candidates]
    named = eligible_operators(trace)[operators] & (operators >= 0) & _in_float32(trace, operators)
    idle_cores = named | (replayed_mask(trace)[candidates] & _are_float32_products(trace, rows))
    idle_cores &= uses_tensor_cores(trace)[rows] == TC_NO
    case: Literal["tf32", "fp16"] = "tf32" if min(map(compute_capability, capable)) >= (8, 0) else "fp16"
    now, then = roofline_shares(trace, rows), roofline_shares(trace, rows, case)
    idle_cores &= ~(now < MIN_UNIT_SHARE) & ~are_memory_bound(trace, rows)
    mine, operators, then, named = (each[idle_cores] for each in (rows, operators, then, named))
    if len(mine) == 0:
        return
    unknown = float(trace.events.duration[mine][np.isnan(then)].sum() / max(trace.events.duration[mine].sum(), 1))
    yield Finding(
        "mixed_precision",
        times_after_share(trace, mine, np.nan_to_num(then)),
        other_device_work(trace, mine),
        mine,
        on_device=True,
        case=case,
        place=_unaligned_shapes(trace, mine[named], operators[named], TENSOR_CORE_MULTIPLES[case]),
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


def _unaligned_shapes(trace: Trace, rows: Int32, operators: Int32, multiple: int) -> str:
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
