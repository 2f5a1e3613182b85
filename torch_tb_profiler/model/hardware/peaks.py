"""Peak rates of the devices of a trace: the catalog entry of each device, and the share of a slice."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.model.devices import DeviceInfo
from torch_tb_profiler.model.hardware.devices import merge_with_built_in
from torch_tb_profiler.model.hardware_catalog import EMPTY_CATALOG, DeviceEntry, HardwareCatalog

_MEMORY_TOLERANCE = 0.1
"""Relative difference of memory sizes that counts as equal; drivers report a little less than vendors sell."""

RATE_NAMES = ("bf16", "fp16", "tf32", "fp8", "fp4", "fp64", "int8", "fp32", "hbm", "link")
"""Rates that a user may set: eight types in TFLOP/s, then memory and links in 10^9 bytes/s."""


class DeviceRates(msgspec.Struct, frozen=True):
    """Peak rates of a device.

    name     of the catalog entry; None if no entry fits
    matrix, vector  FLOP/s by type of the inputs
    memory   bytes/s of device memory, None if unknown
    link     bytes/s to other devices, both directions, None if unknown
    matched  how the entry was found
    source   title of the vendor's document, or who set the rates
    reason   why nothing is known
    clock    MHz at which the peaks of the matrix units hold, None if unknown
    checked  rates that another source confirms; the others rest on `source` alone
    """

    name: str | None
    matrix: Mapping[str, float]
    vector: Mapping[str, float]
    memory: float | None
    link: float | None
    matched: str | None
    source: str | None
    reason: str | None
    clock: float | None = None
    checked: tuple[str, ...] = ()

    def rate(self, matrix: bool, type: str) -> float | None:
        """Return FLOP/s of a type; matrix products in full single precision run on the vector units."""
        if matrix and type in self.matrix:
            return self.matrix[type]
        return self.vector.get(type)


def find_peaks(
    device: DeviceInfo, requested: str = "", user_catalog: HardwareCatalog = EMPTY_CATALOG
) -> DeviceRates:
    """Return the peak rates of a device of a trace.

    requested     "H100 SXM" for another entry, "bf16=989,hbm=3352" for rates (TFLOP/s and 10^9 bytes/s)
    user_catalog  devices of the user's file: a new one is tried before those of the package
    Raise UsageError if `requested` is neither an entry nor rates.
    """
    new, known = merge_with_built_in(user_catalog)
    if requested and "=" not in requested:
        chosen = [entry for entry in (*new, *known) if entry.name.lower() == requested.strip().lower()]
        if not chosen:
            names = ", ".join(entry.name for entry in (*new, *known))
            hint = f"use rates such as bf16=989.4,hbm=3352, or one of {names}"
            raise UsageError(f"there is no device {requested!r}", hint=hint)
        return _build_entry_rates(chosen[0], 1.0, "chosen by name")
    rates = _match_device(device, _find_candidates(device, new))
    if rates.name is None:
        rates = _match_device(device, _find_candidates(device, known))
    return _replace_rates(rates, _parse_rates(requested)) if requested else rates


def _match_device(device: DeviceInfo, candidates: Sequence[DeviceEntry]) -> DeviceRates:
    if not candidates:
        return _unknown_rates(_unknown_device_reason(device))
    same_units = [entry for entry in candidates if entry.units in (None, device.multiprocessors)]
    if device.multiprocessors is None:
        same_units = list(candidates)
    matched = "name" if any(_is_named(device, entry) for entry in candidates) else "units and memory"
    if same_units:
        entry = _choose_by_memory(device, same_units)
        if entry is None:
            return _unknown_rates("it could be " + " or ".join(candidate.name for candidate in same_units))
        has_units = matched == "name" and entry.units is not None and entry.units == device.multiprocessors
        return _build_entry_rates(
            entry, 1.0, matched + (f" and {device.multiprocessors} units" if has_units else "")
        )
    larger = [entry for entry in candidates if (entry.units or 0) > (device.multiprocessors or 0)]
    if len(larger) != 1:
        names = " or ".join(entry.name for entry in larger or candidates)
        return _unknown_rates(f"no known {names} has {device.multiprocessors} units")
    full = larger[0]
    share = (device.multiprocessors or 0) / (full.units or 1)
    slice_ = f"{matched}: a slice of {device.multiprocessors} of its {full.units} units"
    return _build_entry_rates(full, share, slice_)


def _unknown_device_reason(device: DeviceInfo) -> str:
    if device.name:
        return f"the peak rates of {device.name!r} aren't known"
    if device.multiprocessors:
        return f"the peak rates of an unnamed device with {device.multiprocessors} units aren't known"
    return "the name of the device isn't recorded, so its peak rates aren't known"


def _is_named(device: DeviceInfo, entry: DeviceEntry) -> bool:
    return device.name is not None and re.search(entry.match, device.name, re.IGNORECASE) is not None


def _find_candidates(device: DeviceInfo, entries: Sequence[DeviceEntry]) -> list[DeviceEntry]:
    """Return the entries that fit by name.

    AMD's drivers often report no name, or a generic one: then those that fit by units and memory.
    """
    named = [entry for entry in entries if _is_named(device, entry)]
    if named or device.kind != "ROCm" or (device.name and "Radeon Graphics" not in device.name):
        return named
    return [
        entry
        for entry in entries
        if entry.vendor == "ROCm" and entry.units == device.multiprocessors and _has_same_memory(device, entry)
    ]


def _choose_by_memory(device: DeviceInfo, entries: Sequence[DeviceEntry]) -> DeviceEntry | None:
    """Return the only entry, or the first whose memory fits; None if memory doesn't decide."""
    if len({entry.name for entry in entries}) == 1:
        return entries[0]
    return next((entry for entry in entries if _has_same_memory(device, entry)), None)


def _has_same_memory(device: DeviceInfo, entry: DeviceEntry) -> bool:
    if device.memory_bytes is None or entry.memory_gb is None:
        return False
    return abs(device.memory_bytes / 1e9 - entry.memory_gb) <= _MEMORY_TOLERANCE * entry.memory_gb


def _build_entry_rates(entry: DeviceEntry, share: float, matched: str) -> DeviceRates:
    return DeviceRates(
        name=entry.name,
        matrix={kind: float(round(1e12 * share * rate)) for kind, rate in entry.matrix.items()},
        vector={kind: float(round(1e12 * share * rate)) for kind, rate in entry.vector.items()},
        memory=1e9 * share * entry.hbm_gbs,
        link=None if entry.link_gbs is None else 1e9 * entry.link_gbs,
        matched=matched,
        source=entry.source,
        reason=None,
        clock=entry.matrix_mhz,
        checked=entry.checked,
    )


def _unknown_rates(reason: str) -> DeviceRates:
    return DeviceRates(None, {}, {}, None, None, None, None, reason)


def _parse_rates(text: str) -> dict[str, float]:
    """Parse "bf16=989,hbm=3352"; raise UsageError for an unknown name or a value that is no rate."""
    rates = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        try:
            rates[name.strip()] = float(value)
        except ValueError:
            rates[name.strip()] = 0.0
        if name.strip() not in RATE_NAMES or not 0 < rates[name.strip()] < 1e9:
            hint = f"use TFLOP/s for {', '.join(RATE_NAMES[:8])}, and 10^9 bytes/s for hbm and link"
            raise UsageError(f"{part!r} is not a peak rate", hint=hint)
    return rates


def _replace_rates(device: DeviceRates, rates: Mapping[str, float]) -> DeviceRates:
    """Replace rates of a device by those of the user; `fp32` and `fp64` are rates of the vector units."""
    flops = {kind: 1e12 * value for kind, value in rates.items() if kind not in ("hbm", "link")}
    return msgspec.structs.replace(
        device,
        matrix={**device.matrix, **{kind: rate for kind, rate in flops.items() if kind != "fp32"}},
        vector={**device.vector, **{kind: rate for kind, rate in flops.items() if kind in ("fp32", "fp64")}},
        memory=1e9 * rates["hbm"] if "hbm" in rates else device.memory,
        link=1e9 * rates["link"] if "link" in rates else device.link,
        source=", ".join(["figures given: " + ", ".join(rates), *([device.source] if device.source else [])]),
        reason=None,
        clock=None,
        checked=(),
    )
