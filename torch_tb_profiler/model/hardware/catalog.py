"""The data base of devices: the file of the package."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Annotated

import msgspec

from torch_tb_profiler.base.errors import UsageError

Positive = Annotated[float, msgspec.Meta(gt=0)]


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A device as `devices.toml` describes it; rates in TFLOP/s and 10^9 bytes/s, dense, at the boost clock."""

    name: str
    match: str
    hbm_gbs: Positive
    source: str
    vendor: str = ""
    units: int | None = None
    memory_gb: float | None = None
    matrix: dict[str, Positive] = {}
    vector: dict[str, Positive] = {}
    link_gbs: float | None = None
    matrix_mhz: float | None = None
    vector_mhz: float | None = None
    per_clock: dict[str, float] = {}
    vector_per_clock: dict[str, float] = {}


class Catalog(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Entries in the order in which they are tried."""

    device: tuple[Entry, ...] = ()


def read_catalog(text: str, where: str) -> Catalog:
    """A catalog from TOML; UsageError says what of it cannot be read."""
    try:
        catalog = msgspec.toml.decode(text.encode(), type=Catalog)
        for entry in catalog.device:
            re.compile(entry.match)
    except (msgspec.DecodeError, re.error) as error:
        hint = "[[device]] with name, match, hbm_gbs, source, matrix = { bf16 = ... }, vector = { fp32 = ... }"
        raise UsageError(f"{where} describes no devices: {error}", hint=hint) from error
    return catalog


@cache
def built_in() -> Catalog:
    """The devices that the package knows."""
    text = (files(__package__) / "devices.toml").read_text(encoding="utf-8")
    return read_catalog(text, "devices.toml")
