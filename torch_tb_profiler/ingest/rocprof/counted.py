"""Values of counters by what they were counted for: columns with a value for each dispatch."""

from __future__ import annotations

from array import array

import numpy as np

from torch_tb_profiler.model.trace import Float64, Int64

MOST_COUNTERS = 512
"""The tool collects no more than a few dozen at once."""


class Counted:
    """Collects values one by one; several of one counter and id, of parts of the device, are summed."""

    def __init__(self) -> None:
        self._values: dict[str, tuple[array[int], array[float]]] = {}
        self._sums: dict[str, tuple[Int64, Float64]] = {}

    def add(self, name: str, id: int, value: float) -> None:
        """A further value; counters beyond MOST_COUNTERS are left out."""
        if name in self._values or len(self._values) < MOST_COUNTERS:
            ids, values = self._values.setdefault(name, (array("q"), array("d")))
            ids.append(id)
            values.append(value)
            self._sums.pop(name, None)

    def of(self, ids: Int64) -> dict[str, Float64]:
        """Of each counter float64[k]: its values for these ids, NaN where it has none."""
        columns = {}
        for name in self._values:
            distinct, sums = self._summed(name)
            at = np.minimum(np.searchsorted(distinct, ids), len(distinct) - 1)
            columns[name] = sums[np.where(distinct[at] == ids, at, len(distinct))]
        return columns

    def _summed(self, name: str) -> tuple[Int64, Float64]:
        """(int64[d] ids in order, float64[d + 1] their sums and then NaN), kept until a value comes."""
        if name not in self._sums:
            ids, values = self._values[name]
            distinct, where = np.unique(np.array(ids, np.int64), return_inverse=True)
            self._sums[name] = distinct, np.append(np.bincount(where.ravel(), np.array(values)), np.nan)
        return self._sums[name]
