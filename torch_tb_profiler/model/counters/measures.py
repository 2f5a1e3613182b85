"""FLOPs and bytes from hardware counters: what was executed, not what the shapes say.

`vocabularies` says which counters tell them. A part of these tells nothing: without all counters of instructions,
or of a kernel that may use matrix units whose operations were not counted, FLOPs are unknown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec
import numpy as np

from torch_tb_profiler.model.counters.ranges import MISSING, Ranges, ranges
from torch_tb_profiler.model.counters.vocabularies import AMD, NVIDIA, Vocabulary
from torch_tb_profiler.model.tensor_cores import TC_NO, TC_YES, tensor_core_verdict
from torch_tb_profiler.model.trace import Bool, Float64, Trace, derived


class Measures(msgspec.Struct, frozen=True):
    """Columns over the r ranges of `ranges`; NaN is unknown.

    names   of the counters, in order of the alphabet
    values  float64[c, r]
    flops   float64[r]
    bytes   float64[r]
    double  bool[r]  most of the FLOPs are in double precision
    reason  why FLOPs, or else bytes, are unknown; None if both are known
    """

    names: tuple[str, ...]
    values: Float64
    flops: Float64
    bytes: Float64
    double: Bool
    reason: tuple[str | None, ...]


@derived
def measures(trace: Trace) -> Measures:
    """What the counters of every range say."""
    profiled = ranges(trace)
    vocabulary = AMD if profiled.amd else NVIDIA
    values = {name: trace.arg_float(key, profiled.rows) for name, key in profiled.counters.items()}
    vector, double = _vector(values, vocabulary, len(profiled))
    use, _ = _sum(values, vocabulary.matrix_use, len(profiled))
    operations, in_double = _sum(values, vocabulary.matrix, len(profiled))
    tensor = vocabulary.matrix_flops * operations
    verdicts = _verdicts(trace, profiled, vocabulary.vendor)
    plain = (use == 0) | (np.isnan(use) & (verdicts == TC_NO) & ~(tensor > 0))
    flops = vector + np.where(plain, 0.0, np.where(tensor > 0, tensor, np.nan))
    double += np.where(plain, 0.0, vocabulary.matrix_flops * in_double)
    moved = vocabulary.traffic(values, len(profiled))
    counted = np.vstack([*values.values()]) if values else np.empty((0, len(profiled)))
    no_vector, matrix, perhaps_matrix, no_traffic = vocabulary.reasons
    reasons = [
        no_vector if unknown_vector
        else (matrix if used else perhaps_matrix) if no_flops
        else no_traffic if no_bytes
        else None
        for unknown_vector, used, no_flops, no_bytes in zip(
            np.isnan(vector).tolist(), ((use > 0) | (verdicts == TC_YES)).tolist(),
            np.isnan(flops).tolist(), np.isnan(moved).tolist(), strict=True,
        )
    ]  # fmt: skip
    return Measures(tuple(values), counted, flops, moved, double > 0.5 * flops, tuple(reasons))


def _vector(values: Mapping[str, Float64], vocabulary: Vocabulary, count: int) -> tuple[Float64, Float64]:
    """(FLOPs of the vector units, those in double precision); NaN unless all instructions are counted."""
    total, double, seen = np.zeros(count), np.zeros(count), set()
    for name, counted in values.items():
        match = vocabulary.instructions.fullmatch(name)
        if match is None or (kind := _kind(name)) in seen:
            continue
        seen.add(kind)
        flops = (2 if match["fused"] else 1) * vocabulary.lanes * counted
        total += flops
        double += flops if match["double"] else 0
    return (total, double) if len(seen) == vocabulary.all_instructions else (np.full(count, np.nan), double)


def _kind(name: str) -> str:
    """One counter may be there in two spellings: of a part of the device, and summed over it."""
    return name.replace("smsp__", "sm__").removesuffix("_sum")


def _sum(values: Mapping[str, Float64], pattern: re.Pattern[str], count: int) -> tuple[Float64, Float64]:
    """(sums of the counters of a pattern that a range has, those in double precision); NaN where it has none."""
    matches = [(match, values[name]) for name in values if (match := pattern.fullmatch(name))]
    if not matches:
        return np.full(count, np.nan), np.zeros(count)
    counted = np.array([each for _, each in matches])
    total: Float64 = np.where(np.isnan(counted).all(axis=0), np.nan, np.nansum(counted, axis=0))
    double = [each for match, each in matches if match.groupdict().get("double")]
    return total, np.nansum(double, axis=0) if double else np.zeros(count)


def _verdicts(trace: Trace, profiled: Ranges, vendor: str) -> np.ndarray:
    """Of every range whether its kernel uses matrix units, by its name."""
    names = np.where(profiled.kernel >= 0, trace.events.name[profiled.kernel], trace.events.name[profiled.rows])
    verdicts = {
        code: tensor_core_verdict(trace.strings[code], vendor)[0]
        for code in np.unique(names).tolist()
        if code >= 0 and trace.strings[code] != MISSING
    }
    return np.array([verdicts.get(code, -1) for code in names.tolist()], np.int8)
