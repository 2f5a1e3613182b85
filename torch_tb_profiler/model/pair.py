"""Two sides that are compared, each of one recording or several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch_tb_profiler.model.trace import Trace

Recordings = Sequence[Trace]
"""Recordings of one side, at least one; where a single one is shown (memory, batch sizes) it is the first."""


@dataclass(frozen=True)
class TracePair:
    """A base and the candidate that is compared with it.

    one_run  all are recordings of one worker of one run, hence of one program that ran on
    """

    base: Recordings
    candidate: Recordings
    one_run: bool = False
