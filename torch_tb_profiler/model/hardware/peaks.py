"""The peak rates of the devices of a trace: which entry of the catalog each is, and what a part of it can do."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.model.catalog import EMPTY_CATALOG, Catalog, DeviceEntry
from torch_tb_profiler.model.devices import DeviceInfo
from torch_tb_profiler.model.hardware.catalog import with_built_in

_SAME_MEMORY = 0.1
"""Relative; drivers report a little less than the vendor sells."""

RATES = ("bf16", "fp16", "tf32", "fp8", "fp4", "fp64", "int8", "fp32", "hbm", "link")


class Peaks(msgspec.Struct, frozen=True):
    """What a device can do at most.

    name     of the entry; None if no entry fits
    matrix, vector  FLOP/s by type of the inputs
    memory   bytes/s of device memory, None if unknown
    link     bytes/s to other devices, both directions, None if unknown
    matched  how the entry was found
    source   title of the vendor's document, or who set the figures
    reason   why nothing is known
    checked  figures that another source confirms; the others rest on `source` alone
    clock    MHz at which the peaks of the matrix units hold, None if unknown
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
        """FLOP/s; products of full single precision run on the vector units."""
        if matrix and type in self.matrix:
            return self.matrix[type]
        return self.vector.get(type)


def peaks_of(device: DeviceInfo, given: str = "", own: Catalog = EMPTY_CATALOG) -> Peaks:
    """The peaks of a device of a trace.

    own    devices of the user's file: a new one is tried before those of the package
    given  "H100 SXM" for another entry, "bf16=989,hbm=3352" for figures of one's own (TFLOP/s and 10^9 bytes/s)
    UsageError if `given` is neither.
    """
    new, known = with_built_in(own)
    if given and "=" not in given:
        named = [entry for entry in (*new, *known) if entry.name.lower() == given.strip().lower()]
        if not named:
            names = ", ".join(entry.name for entry in (*new, *known))
            hint = f"figures such as bf16=989.4,hbm=3352, or {names}"
            raise UsageError(f"there is no device {given!r}", hint=hint)
        return _peaks(named[0], 1.0, "chosen by name")
    peaks = _match(device, _candidates(device, new))
    if peaks.name is None:
        peaks = _match(device, _candidates(device, known))
    return _with_figures(peaks, _figures(given)) if given else peaks


def _called(device: DeviceInfo) -> str:
    if device.name:
        return f" ({device.name!r})"
    if device.multiprocessors:
        return f" (without a name, {device.multiprocessors} units)"
    return ", whose name is not recorded,"


def _match(device: DeviceInfo, candidates: Sequence[DeviceEntry]) -> Peaks:
    if not candidates:
        return _unknown(f"the peak rates of this device{_called(device)} are not known")
    exact = [entry for entry in candidates if entry.units in (None, device.multiprocessors)]
    if device.multiprocessors is None:
        exact = list(candidates)
    by = "name" if any(_named(device, entry) for entry in candidates) else "units and memory"
    if exact:
        best = _by_memory(device, exact)
        if best is None:
            return _unknown("it could be " + " or ".join(entry.name for entry in exact))
        counted = by == "name" and best.units is not None and best.units == device.multiprocessors
        units = f" and {device.multiprocessors} units" if counted else ""
        return _peaks(best, 1.0, by + units)
    larger = [entry for entry in candidates if (entry.units or 0) > (device.multiprocessors or 0)]
    if len(larger) != 1:
        named = " or ".join(entry.name for entry in larger or candidates)
        return _unknown(f"{device.multiprocessors} units are none of {named}")
    whole = larger[0]
    share = (device.multiprocessors or 0) / (whole.units or 1)
    return _peaks(whole, share, f"{by}: a slice of {device.multiprocessors} of its {whole.units} units")


def _named(device: DeviceInfo, entry: DeviceEntry) -> bool:
    return device.name is not None and re.search(entry.match, device.name, re.IGNORECASE) is not None


def _candidates(device: DeviceInfo, entries: Sequence[DeviceEntry]) -> list[DeviceEntry]:
    """By name; drivers of AMD often report none, or one that says nothing."""
    named = [entry for entry in entries if _named(device, entry)]
    if named or device.kind != "ROCm" or (device.name and "Radeon Graphics" not in device.name):
        return named
    return [
        entry
        for entry in entries
        if entry.vendor == "ROCm" and entry.units == device.multiprocessors and _same_memory(device, entry)
    ]


def _by_memory(device: DeviceInfo, entries: Sequence[DeviceEntry]) -> DeviceEntry | None:
    """The only one, or the first whose memory fits; None if that does not tell them apart."""
    fitting = [entry for entry in entries if _same_memory(device, entry)]
    if len({entry.name for entry in entries}) == 1:
        return entries[0]
    return fitting[0] if fitting else None


def _same_memory(device: DeviceInfo, entry: DeviceEntry) -> bool:
    if device.memory_bytes is None or entry.memory_gb is None:
        return False
    return abs(device.memory_bytes / 1e9 - entry.memory_gb) <= _SAME_MEMORY * entry.memory_gb


def _peaks(entry: DeviceEntry, share: float, matched: str) -> Peaks:
    return Peaks(
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


def _unknown(reason: str) -> Peaks:
    return Peaks(None, {}, {}, None, None, None, None, reason)


def _figures(given: str) -> dict[str, float]:
    figures = {}
    for part in given.split(","):
        name, _, text = part.partition("=")
        try:
            figures[name.strip()] = float(text)
        except ValueError:
            figures[name.strip()] = 0.0
        if name.strip() not in RATES or not 0 < figures[name.strip()] < 1e9:
            hint = f"TFLOP/s of {', '.join(RATES[:8])}; 10^9 bytes/s of hbm and link"
            raise UsageError(f"{part!r} is no peak rate", hint=hint)
    return figures


def _with_figures(peaks: Peaks, figures: Mapping[str, float]) -> Peaks:
    """`fp32` and `fp64` are rates of the vector units."""
    rates = {kind: 1e12 * value for kind, value in figures.items() if kind not in ("hbm", "link")}
    return msgspec.structs.replace(
        peaks,
        matrix={**peaks.matrix, **{kind: rate for kind, rate in rates.items() if kind != "fp32"}},
        vector={**peaks.vector, **{kind: rate for kind, rate in rates.items() if kind in ("fp32", "fp64")}},
        memory=1e9 * figures["hbm"] if "hbm" in figures else peaks.memory,
        link=1e9 * figures["link"] if "link" in figures else peaks.link,
        source=", ".join(["figures given: " + ", ".join(figures), *([peaks.source] if peaks.source else [])]),
        reason=None,
        clock=None,
        checked=(),
    )
