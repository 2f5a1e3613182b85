"""The `nn.Module` that each event belongs to; kernels that a graph replays belong to where they were captured.

    capture   Net_0 / Linear_0 -- aten::mm -- launch       the module around the launch
    replay    cudaGraphLaunch -- gemm                      belongs to Net_0 / Linear_0, though no module was called

A place of the capture that the trace has no call of is a place without calls.
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.module_calls import Modules, has_module_calls, module_calls, recorded_modules
from torch_tb_profiler.model.origins.replayed_kernels import replayed_kernels
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Trace

__all__ = ["Modules", "has_modules", "module_calls", "modules"]

_INSTANCE = lazy_regex(r"_\d+$|^.*\((?P<kind>.*)\)$")


@derived
def has_modules(trace: Trace) -> bool:
    """Return whether `modules` finds a place, if possible without attributing every event."""
    return has_module_calls(trace) or any(each.modules for each in replayed_kernels(trace).values)


@derived
def modules(trace: Trace) -> Modules:
    """Return the module of every event, forward and backward."""
    recorded, replayed = recorded_modules(trace), replayed_kernels(trace)
    paths = [each.modules for each in replayed.values]
    if not any(paths):
        return recorded
    names, classes, parents = list(recorded.names), list(recorded.classes), recorded.parent.tolist()
    places: dict[tuple[int, str], int] = {}
    for code, (parent, name) in enumerate(zip(parents, names, strict=True)):
        places.setdefault((parent, name), code)
    place_of = np.full(len(paths) + 1, NO_CODE, np.int32)
    for value, path in enumerate(paths):
        place = NO_CODE
        for name in path or ():
            above, place = place, places.setdefault((place, name), len(names))
            if place == len(names):
                names.append(name)
                classes.append(_class_of(name))
                parents.append(above)
        place_of[value] = place
    rows = device_links(trace).rows
    placed = place_of[replayed.code]
    code, backward = recorded.code.copy(), recorded.backward.copy()
    code[rows] = np.where(replayed.code >= 0, placed, code[rows])
    is_backward = np.array([bool(each.backward) for each in replayed.values] + [False])
    backward[rows] = np.where(replayed.code >= 0, is_backward[replayed.code] & (placed >= 0), backward[rows])
    return msgspec.structs.replace(
        recorded,
        names=tuple(names),
        classes=tuple(classes),
        ids=(*recorded.ids, *[int(ABSENT)] * (len(names) - len(recorded.ids))),
        parent=np.array(parents, np.int32),
        code=code,
        backward=backward,
    )


def _class_of(name: str) -> str:
    """Return the class of an instance: `Linear` of "Linear_75" and of "fc (Linear)"."""
    match = _INSTANCE.search(name)
    return match["kind"] if match and match["kind"] else _INSTANCE.sub("", name) if match else name
