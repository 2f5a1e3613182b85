"""What a call costs: its work, and why that is unknown where it is."""

from __future__ import annotations

from typing import Literal, NamedTuple

Unit = Literal["matrix", "vector"]
"""What does the arithmetic: Tensor (matrix) cores or the vector units."""


class Unknown(Exception):
    """The work of a call cannot be told; `args[0]` says why."""


class Cost(NamedTuple):
    """Work of one call.

    flops      executed; None if unknown
    bytes      of device memory read and written, every tensor once; None if unknown
    unit       what does the arithmetic; None without any
    type       element type of the inputs, as the trace spells it
    model      the FLOPs that the mathematics needs, where that is fewer than executed (attention's backward)
    estimated  the bytes are a guess from the arguments
    reason     why FLOPs or bytes are unknown
    """

    flops: float | None
    bytes: float | None
    unit: Unit | None = None
    type: str = ""
    model: float | None = None
    estimated: bool = False
    reason: str | None = None

    @property
    def needed(self) -> float | None:
        """FLOPs of the mathematics alone."""
        return self.flops if self.model is None else self.model
