"""Device peak rates and operator models: the schema of `hardware/devices.py` and of the user's own file."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

PositiveRate = Annotated[float, msgspec.Meta(gt=0, lt=1e9)]
PositiveCount = Annotated[int, msgspec.Meta(gt=0)]


class DeviceEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A device; rates in TFLOP/s and 10^9 bytes/s, dense, at the boost clock.

    checked  figures that a second source confirms: number types, "hbm", "link"
    """

    name: str
    match: str
    hbm_gbs: PositiveRate
    source: str
    vendor: str = ""
    units: PositiveCount | None = None
    memory_gb: PositiveRate | None = None
    matrix: dict[str, PositiveRate] = {}
    vector: dict[str, PositiveRate] = {}
    link_gbs: PositiveRate | None = None
    matrix_mhz: PositiveRate | None = None
    vector_mhz: PositiveRate | None = None
    per_clock: dict[str, PositiveRate] = {}
    vector_per_clock: dict[str, PositiveRate] = {}
    checked: tuple[str, ...] = ()


class OperatorModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The work of one call of an operator, as formulas of its inputs (`base.formulas`).

    unit          Tensor (matrix) cores or vector units
    flops, bytes  formulas; "" is unknown
    """

    name: str
    flops: str = ""
    bytes: str = ""
    unit: Literal["matrix", "vector"] = "vector"


class HardwareCatalog(msgspec.Struct, frozen=True):
    """Devices, in the order in which they are tried, and the user's operator models, with distinct names.

    note  why the user's file could not be used, if so
    """

    device: tuple[DeviceEntry, ...] = ()
    operator: tuple[OperatorModel, ...] = ()
    note: str | None = None


EMPTY_CATALOG = HardwareCatalog()
"""The catalog of a user without a file."""
