"""Which steps an overview lists: of very many a selection that has the extremes of all."""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.analyses.shared.breakdown import Breakdown

MAX_STEPS = 2000
"""Of more steps than this an overview lists a selection: a chart has no room for more, and 100,000 take 21 MB."""


def listed_steps(times: Breakdown) -> list[int]:
    """Return the numbers of at most about MAX_STEPS steps in order: all, or of each stretch the longest.

    The complete ones that come first and last, or have the least or the most of the time or of a category, always
    stay, so that what is derived from the list is true of all steps.
    """
    durations, complete = times.durations, np.flatnonzero(times.steps.complete)
    count = len(durations)
    if count <= MAX_STEPS:
        return list(range(count))
    size = -(-count // MAX_STEPS)
    listed = {first + int(np.argmax(durations[first : first + size])) for first in range(0, count, size)}
    if len(complete):
        listed |= {int(complete[0]), int(complete[-1])}
        for values in (durations, *times.times.values()):
            among = values[complete]
            listed |= {int(complete[np.argmin(among)]), int(complete[np.argmax(among)])}
    return sorted(listed)
