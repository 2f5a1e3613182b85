"""Rows of the tables: events of one name on both sides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from torch_tb_profiler.analyses.diff.changes import Change
from torch_tb_profiler.analyses.diff.computed import Computed
from torch_tb_profiler.analyses.diff.name_tables import ComparedName
from torch_tb_profiler.views.diff.payload import (
    DiffCollective,
    DiffFamily,
    DiffKernel,
    DiffOperator,
    DiffWork,
    Status,
)

Side = Mapping[str, Computed]


def operators(rows: Iterable[ComparedName], computed: tuple[Side, Side]) -> list[DiffOperator]:
    """Operators, those that changed most first; `computed`: what those of each name compute on both sides."""
    drawn = []
    for row in rows:
        host_self, host_total, device_self, device_total = row.changes
        done = work(computed[0].get(row.base_name or ""), computed[1].get(row.candidate_name or ""))
        drawn.append(DiffOperator(*_names(row), row.calls, host_self, host_total, device_self, device_total, done))
    return sorted(drawn, key=lambda row: magnitude(row.host_self, row.device_self))


def work(base: Computed | None, candidate: Computed | None) -> DiffWork:
    """FLOPs and speed of both sides; None where nothing is computed, or nobody knows what."""
    speeds = [1e9 * each.flops / each.busy_ns if each and each.busy_ns else None for each in (base, candidate)]
    flops = [each.flops if each and each.flops else None for each in (base, candidate)]
    return DiffWork(*flops, *speeds)


def families(rows: Iterable[ComparedName]) -> list[DiffFamily]:
    """Families, those that changed most first."""
    drawn = []
    for row in rows:
        name, _, state = _names(row)
        drawn.append(DiffFamily(name, state, row.calls, *row.changes))
    return sorted(drawn, key=lambda row: magnitude(row.total))


def kernels(
    rows: Iterable[ComparedName], short: Mapping[str, str], family_of: Mapping[str, str]
) -> list[DiffKernel]:
    """Kernels, those that changed most first; `short`: their short names, `family_of` their families."""
    drawn = []
    for row in rows:
        name, renamed, state = _names(row)
        (total,) = row.changes
        shown = short[renamed] if renamed else None
        family = family_of.get(name, "other")
        drawn.append(DiffKernel(name, renamed, state, row.calls, total, short.get(name, name), shown, family))
    return sorted(drawn, key=lambda row: magnitude(row.total))


def collectives(rows: Iterable[ComparedName], short: Mapping[str, str]) -> list[DiffCollective]:
    """Collectives, those that changed most first. (None is ever renamed.)"""
    drawn = [
        DiffCollective(
            row.base_name or row.candidate_name or "",
            short.get(row.base_name or row.candidate_name or "", row.base_name or row.candidate_name or ""),
            status(row.base_name, row.candidate_name, row.moved),
            row.calls,
            *row.changes,
        )
        for row in rows
    ]
    return sorted(drawn, key=lambda row: magnitude(row.total))


def _names(row: ComparedName) -> tuple[str, str | None, Status]:
    return names(row.base_name, row.candidate_name, row.moved)


def names(base: str | None, candidate: str | None, moved: bool = False) -> tuple[str, str | None, Status]:
    """(name, the other name of what is renamed, status)."""
    state = status(base, candidate, moved)
    return base or candidate or "", candidate if state == "renamed" else None, state


def status(base: str | None, candidate: str | None, moved: bool) -> Status:
    """From the names on both sides, None where it is not there."""
    if base is None:
        return "moved_in" if moved else "added"
    if candidate is None:
        return "moved_out" if moved else "removed"
    return "matched" if base == candidate else "renamed"


def magnitude(*changes: Change) -> tuple[bool, float]:
    """Sorts significant changes first, then large ones."""
    significant = [change for change in changes if change.significant]
    return not significant, -max(abs(change.delta_ns or 0.0) for change in significant or changes)
