"""How the steps of a rank are spent."""

from __future__ import annotations

from typing import Annotated

import msgspec
import numpy as np
import numpy.typing as npt

from torch_tb_profiler.analyses.shared.breakdown import role_intervals
from torch_tb_profiler.base.intervals import Intervals, covered_time, intersect
from torch_tb_profiler.model.steps import Steps
from torch_tb_profiler.model.trace import Trace

STEP = np.dtype(
    [
        ("start", "<i8"), ("duration", "<i8"), ("computation", "<i8"), ("overlap", "<i8"), ("exposed", "<i8"),
        ("other", "<i8"), ("complete", "?"),
    ]
)  # fmt: skip
"""One step; duration = computation + overlap + exposed + other, in ns.

computation  kernels that do not communicate (without a GPU: CPU Exec) while nothing communicates
overlap      both at once
exposed      communication that no computation hides
complete     False for a trailing step whose device work is missing
"""


class RankSteps(msgspec.Struct, frozen=True):
    """In order of time. parts  bytes of an array of STEP"""

    names: tuple[str, ...]
    parts: Annotated[bytes, STEP]

    def __len__(self) -> int:
        return len(self.names)

    def table(self) -> npt.NDArray[np.void]:
        """Their parts as a structured array (read-only)."""
        return np.frombuffer(self.parts, STEP)

    def complete(self) -> list[str]:
        """The names of those that averages are made of."""
        return [name for name, whole in zip(self.names, self.table()["complete"].tolist(), strict=True) if whole]


def rank_steps(trace: Trace, spans: Steps, computation: Intervals) -> RankSteps:
    """Every step of a trace."""
    communication = role_intervals(trace)["communication"]
    window = spans.starts, spans.ends
    table = np.zeros(len(spans.starts), STEP)
    table["overlap"] = covered_time(intersect(computation, communication), *window)
    table["start"], table["duration"], table["complete"] = spans.starts, spans.ends - spans.starts, spans.complete
    table["computation"] = covered_time(computation, *window) - table["overlap"]
    table["exposed"] = covered_time(communication, *window) - table["overlap"]
    table["other"] = table["duration"] - table["computation"] - table["exposed"] - table["overlap"]
    return RankSteps(tuple(spans.names), table.tobytes())
