"""What the two traces differ in as a whole: devices, memory, communication."""

from __future__ import annotations

from collections.abc import Mapping

from torch_tb_profiler.analyses.diff.comparison import ComparedDevice, Comparison
from torch_tb_profiler.analyses.shared.memory_curve import Levels, Peak, levels, peak
from torch_tb_profiler.analyses.shared.utilization import Utilization
from torch_tb_profiler.model.pair import Pair
from torch_tb_profiler.views.diff import rows
from torch_tb_profiler.views.diff.payload import (
    DiffCommunication,
    DiffDevice,
    DiffMemory,
    DiffShare,
    DiffWork,
    Size,
)


def devices(comparison: Comparison) -> list[DiffDevice]:
    """Devices in order of their ids."""
    return [_device(each) for each in comparison.devices]


def _device(device: ComparedDevice) -> DiffDevice:
    base, candidate = device.base, device.candidate
    return DiffDevice(
        base_id=base.device.id if base else None,
        candidate_id=candidate.device.id if candidate else None,
        base_name=base.device.name if base else None,
        candidate_name=candidate.device.name if candidate else None,
        busy=device.busy,
        utilization=_share(base, candidate, "utilization"),
        sm_efficiency=_share(base, candidate, "sm_efficiency"),
        achieved_occupancy=_share(base, candidate, "achieved_occupancy"),
        tensor_core_ratio=_share(base, candidate, "tensor_core_ratio"),
    )


def _share(base: Utilization | None, candidate: Utilization | None, field: str) -> DiffShare:
    old, new = (None if side is None else getattr(side, field) for side in (base, candidate))
    return _difference(old, new)


def _difference(old: float | None, new: float | None) -> DiffShare:
    return DiffShare(old, new, None if old is None or new is None else new - old)


def work(comparison: Comparison) -> DiffWork:
    """Of matrix operators."""
    return rows.work(*(side.matrix for side in comparison.computed))


def work_coverage(comparison: Comparison) -> DiffShare:
    """Share of the device time whose work is known."""
    return _difference(*(side.coverage for side in comparison.computed))


def memory(pair: Pair) -> list[DiffMemory]:
    """Peaks of each device that the first recording of either side has."""
    sides = [{level.device.name: level for level in levels(side[0])} for side in (pair.base, pair.candidate)]
    peaks = []
    for device in dict.fromkeys([*sides[0], *sides[1]]):
        old, new = (side.get(device) for side in sides)
        peaks.append(
            DiffMemory(device, _size(_allocated(old), _allocated(new)), _size(_reserved(old), _reserved(new)))
        )
    return peaks


def _allocated(level: Levels | None) -> Peak | None:
    return None if level is None or level.relative else peak(level.allocated)


def _reserved(level: Levels | None) -> Peak | None:
    return None if level is None else peak(level.reserved)


def _size(base: Peak | None, candidate: Peak | None) -> Size:
    old, new = (None if moment is None else moment.bytes for moment in (base, candidate))
    if old is None or new is None:
        return Size(old, new, None, None)
    return Size(old, new, new - old, (new - old) / old if old else (0.0 if new == old else None))


def communication(comparison: Comparison, short: Mapping[str, str]) -> DiffCommunication:
    """Totals and rows; `short`: the short names of kernels."""
    listed = rows.collectives(comparison.collectives, short)
    return DiffCommunication(comparison.communication, comparison.exposed, listed)
