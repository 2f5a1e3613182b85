"""Accelerators as a data base describes them, and operators as a user does."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

PositiveRate = Annotated[float, msgspec.Meta(gt=0, lt=1e9)]
PositiveCount = Annotated[int, msgspec.Meta(gt=0)]


class DeviceEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A device as `devices.toml` describes it; rates in TFLOP/s and 10^9 bytes/s, dense, at the boost clock.

    checked  figures that another source than `source` confirms: types, "hbm", "link"
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
    """The work of an operator as a user writes it: formulas of its inputs (`base.formulas`).

    unit   what does the arithmetic: Tensor (matrix) cores or the vector units
    flops, bytes  of one call; "" is unknown
    """

    name: str
    flops: str = ""
    bytes: str = ""
    unit: Literal["matrix", "vector"] = "vector"


class Catalog(msgspec.Struct, frozen=True):
    """Entries in the order in which they are tried; `note`: why those of the user's file are not among them.

    operator  the user's models, each of another name
    """

    device: tuple[DeviceEntry, ...] = ()
    operator: tuple[OperatorModel, ...] = ()
    note: str | None = None


EMPTY_CATALOG = Catalog()
"""What a user who has no file says."""
