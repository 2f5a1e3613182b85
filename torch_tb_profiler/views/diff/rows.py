"""Rows of the Diff tab: parts of the timeline, and events of one name on both sides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from torch_tb_profiler.analyses.diff.changes import Change
from torch_tb_profiler.analyses.diff.flops import FlopsPerStep
from torch_tb_profiler.analyses.diff.level import ComparedLevel, ComparedPart
from torch_tb_profiler.analyses.diff.name_tables import ComparedName
from torch_tb_profiler.analyses.diff.roles import PartRole
from torch_tb_profiler.views._shared.text import reason_texts
from torch_tb_profiler.views.diff.payload import (
    DiffCollective,
    DiffCrumb,
    DiffFamily,
    DiffKernel,
    DiffLevel,
    DiffOperator,
    DiffPart,
    DiffWork,
    Status,
)

SELF = "self"
"""Name and kind of a part's own time, outside its parts."""

FlopsByName = Mapping[str, FlopsPerStep]


def build_level(compared: ComparedLevel, short_names: Mapping[str, str], noun: str = "step") -> DiffLevel:
    """Build the payload of an open part.

    short_names  those of kernels; noun: the name of the root, see `DiffPayload.step_noun`
    """
    part = _build_part_row(compared.part, short_names)
    if not part.path:
        part = replace(part, name=noun, short_name=noun)
    return DiffLevel(
        path=compared.part.path,
        crumbs=[DiffCrumb(path, name if path else noun) for path, name in compared.trail],
        part=part,
        parts=_accumulate([_build_part_row(part, short_names) for part in compared.parts]),
        operators=operator_rows(compared.operators, compared.flops),
        reasons=reason_texts(compared.reasons),
    )


def _build_part_row(part: ComparedPart, short_names: Mapping[str, str]) -> DiffPart:
    if part.role is None:
        kind, (name, candidate_name, status) = SELF, row_names(SELF, SELF)
    else:
        kind = part.role.name.lower()
        name, candidate_name, status = row_names(part.base_name, part.candidate_name, part.moved, part.unrecorded)
    if part.role not in (PartRole.DEVICE, PartRole.UNLINKED):
        short_names = {}
    return DiffPart(
        path=part.path,
        name=name,
        candidate_name=candidate_name,
        short_name=short_names.get(name, name),
        short_candidate_name=None if candidate_name is None else short_names.get(candidate_name, candidate_name),
        kind=kind,
        status=status,
        parts=part.parts,
        calls=part.calls,
        host=part.host,
        device=part.device,
        delta_accumulated_ns=None,
        delta_device_accumulated_ns=None,
        base_event=part.base_event,
        candidate_event=part.candidate_event,
    )


def _accumulate(parts: list[DiffPart]) -> list[DiffPart]:
    """Add the running sums of the differences; they are unknown from the first unknown difference on."""
    host: float | None = 0.0
    device: float | None = 0.0
    accumulated = []
    for part in parts:
        host = None if host is None or part.host.delta_ns is None else host + part.host.delta_ns
        device = None if device is None or part.device.delta_ns is None else device + part.device.delta_ns
        accumulated.append(replace(part, delta_accumulated_ns=host, delta_device_accumulated_ns=device))
    return accumulated


def operator_rows(rows: Iterable[ComparedName], flops: tuple[FlopsByName, FlopsByName]) -> list[DiffOperator]:
    """Return operators, largest change first; `flops` are those of the base and of the candidate."""
    operators = []
    for row in rows:
        host_self, host_total, device_self, device_total = row.changes
        work = build_work(flops[0].get(row.base_name or ""), flops[1].get(row.candidate_name or ""))
        names = row_names(row.base_name, row.candidate_name, row.moved, row.unrecorded)
        operators.append(DiffOperator(*names, row.calls, host_self, host_total, device_self, device_total, work))
    return sorted(operators, key=lambda row: significance_key(row.host_self, row.device_self))


def build_work(base: FlopsPerStep | None, candidate: FlopsPerStep | None) -> DiffWork:
    """Return FLOPs and FLOP/s of both sides, None where they are zero or unknown."""
    sides = base, candidate
    speeds = [1e9 * side.flops / side.busy_ns if side and side.busy_ns else None for side in sides]
    flops = [side.flops if side and side.flops else None for side in sides]
    return DiffWork(*flops, *speeds)


def family_rows(rows: Iterable[ComparedName]) -> list[DiffFamily]:
    """Return families, largest change first."""
    families = []
    for row in rows:
        name, _, status = row_names(row.base_name, row.candidate_name, row.moved, row.unrecorded)
        families.append(DiffFamily(name, status, row.calls, *row.changes))
    return sorted(families, key=lambda row: significance_key(row.total))


def kernel_rows(
    rows: Iterable[ComparedName], short_names: Mapping[str, str], family_of: Mapping[str, str]
) -> list[DiffKernel]:
    """Return kernels, largest change first."""
    kernels = []
    for row in rows:
        name, renamed, status = row_names(row.base_name, row.candidate_name, row.moved, row.unrecorded)
        (total,) = row.changes
        short, short_renamed = short_names.get(name, name), short_names[renamed] if renamed else None
        family = family_of.get(name, "other")
        kernels.append(DiffKernel(name, renamed, status, row.calls, total, short, short_renamed, family))
    return sorted(kernels, key=lambda row: significance_key(row.total))


def collective_rows(rows: Iterable[ComparedName], short_names: Mapping[str, str]) -> list[DiffCollective]:
    """Return collectives, largest change first. They are never renamed."""
    collectives = []
    for row in rows:
        name, _, status = row_names(row.base_name, row.candidate_name, row.moved, row.unrecorded)
        collectives.append(DiffCollective(name, short_names.get(name, name), status, row.calls, *row.changes))
    return sorted(collectives, key=lambda row: significance_key(row.total))


def row_names(
    base: str | None, candidate: str | None, moved: bool = False, unrecorded: bool = False
) -> tuple[str, str | None, Status]:
    """Return (name, the candidate's name if it was renamed, status) from the names on both sides."""
    status = row_status(base, candidate, moved, unrecorded)
    return base or candidate or "", candidate if status == "renamed" else None, status


def row_status(base: str | None, candidate: str | None, moved: bool, unrecorded: bool) -> Status:
    """Return the status of a row from its names, None on a side that doesn't have it."""
    if unrecorded:
        return "not_recorded"
    if base is None:
        return "moved_in" if moved else "added"
    if candidate is None:
        return "moved_out" if moved else "removed"
    return "matched" if base == candidate else "renamed"


def significance_key(*changes: Change) -> tuple[bool, float]:
    """Return a key that sorts significant changes first, then large ones."""
    significant = [change for change in changes if change.significant]
    return not significant, -max(abs(change.delta_ns or 0.0) for change in significant or changes)
