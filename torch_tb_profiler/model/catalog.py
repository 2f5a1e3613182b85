"""Accelerators as a data base describes them, and operators as a user does."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

Positive = Annotated[float, msgspec.Meta(gt=0, lt=1e9)]
Count = Annotated[int, msgspec.Meta(gt=0)]


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A device as `devices.toml` describes it; rates in TFLOP/s and 10^9 bytes/s, dense, at the boost clock.

    checked  figures that another source than `source` confirms: types, "hbm", "link"
    """

    name: str
    match: str
    hbm_gbs: Positive
    source: str
    vendor: str = ""
    units: Count | None = None
    memory_gb: Positive | None = None
    matrix: dict[str, Positive] = {}
    vector: dict[str, Positive] = {}
    link_gbs: Positive | None = None
    matrix_mhz: Positive | None = None
    vector_mhz: Positive | None = None
    per_clock: dict[str, Positive] = {}
    vector_per_clock: dict[str, Positive] = {}
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

    device: tuple[Entry, ...] = ()
    operator: tuple[OperatorModel, ...] = ()
    note: str | None = None


NO_DEVICES = Catalog()
"""What a user who has no file says."""
