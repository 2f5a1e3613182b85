"""An open part of the logical timeline."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from torch_tb_profiler.analyses.diff.level import ComparedLevel, ComparedPart, compare_part
from torch_tb_profiler.analyses.diff.roles import Role
from torch_tb_profiler.model.families import pair_kernel_names
from torch_tb_profiler.model.pair import Pair
from torch_tb_profiler.views._shared.text import reason_texts
from torch_tb_profiler.views.diff.payload import DiffCrumb, DiffLevel, DiffPart, DiffPartParams
from torch_tb_profiler.views.diff.rows import names, operators

SELF = "self"


def build_part(pair: Pair, params: DiffPartParams) -> DiffLevel:
    """The level of a path; NotFoundError if there is no such part."""
    return level(compare_part(pair, params.path, params.min_effect), pair_kernel_names(pair))


def level(compared: ComparedLevel, short: Mapping[str, str]) -> DiffLevel:
    """The payload of a level; `short`: the short names of kernels."""
    return DiffLevel(
        path=compared.part.path,
        crumbs=[DiffCrumb(path, name) for path, name in compared.trail],
        part=_part(compared.part, short),
        parts=_accumulated([_part(part, short) for part in compared.parts]),
        operators=operators(compared.operators, compared.computed),
        reasons=reason_texts(compared.reasons),
    )


def _part(part: ComparedPart, short: Mapping[str, str]) -> DiffPart:
    if part.role is None:
        kind, (name, candidate_name, status) = SELF, names(SELF, SELF)
    else:
        kind, (name, candidate_name, status) = (
            part.role.name.lower(),
            names(part.base_name, part.candidate_name, part.moved),
        )
    if part.role not in (Role.DEVICE, Role.UNLINKED):
        short = {}
    return DiffPart(
        path=part.path,
        name=name,
        candidate_name=candidate_name,
        short_name=short.get(name, name),
        short_candidate_name=None if candidate_name is None else short.get(candidate_name, candidate_name),
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


def _accumulated(parts: list[DiffPart]) -> list[DiffPart]:
    """With the sums of the differences up to each part; unknown from the first that is unknown."""
    host: float | None = 0.0
    device: float | None = 0.0
    accumulated = []
    for part in parts:
        host = None if host is None or part.host.delta_ns is None else host + part.host.delta_ns
        device = None if device is None or part.device.delta_ns is None else device + part.device.delta_ns
        accumulated.append(replace(part, delta_accumulated_ns=host, delta_device_accumulated_ns=device))
    return accumulated
