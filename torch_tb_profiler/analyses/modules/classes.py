"""Times by class of module: sums of what belongs to no module inside, so that nothing counts twice."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from torch_tb_profiler.analyses.modules.times import ModuleTimes
from torch_tb_profiler.model.modules.modules import Modules


class ClassTimes(msgspec.Struct, frozen=True):
    """The modules of one class; times in ns, without those of modules inside.

    places          of the class
    forward, backward  device work launched in them
    host            of their calls: Python, framework and operators
    backward_host   of their backward operators
    longest         the place with the most device time, of those without any the one with the most host time
    """

    name: str
    places: tuple[int, ...]
    calls: int
    operators: int
    forward: int
    backward: int
    host: int
    backward_host: int
    longest: int

    @property
    def device(self) -> int:
        """Device work, forward and backward."""
        return self.forward + self.backward


def class_times(model: Modules, times: ModuleTimes, order: Iterable[int]) -> list[ClassTimes]:
    """Of each class, in order of its first place; a module without a class stands for itself."""
    places: dict[str, list[int]] = {}
    for code in order:
        places.setdefault(model.classes[code] or model.names[code], []).append(code)
    device = times.forward_self + times.backward_self
    rank = np.where(device > 0, device, times.host_exclusive)

    def sum_of(column: np.ndarray, codes: list[int]) -> int:
        return int(column[codes].sum())

    return [
        ClassTimes(
            name=name,
            places=tuple(codes),
            calls=sum_of(times.calls, codes),
            operators=sum_of(times.operators, codes),
            forward=sum_of(times.forward_self, codes),
            backward=sum_of(times.backward_self, codes),
            host=sum_of(times.host_exclusive, codes),
            backward_host=sum_of(times.backward_host_self, codes),
            longest=codes[int(rank[codes].argmax())],
        )
        for name, codes in places.items()
    ]
