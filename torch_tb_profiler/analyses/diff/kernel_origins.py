"""Kernels of two sides that come from the same place in the program, whatever their names are.

    base       triton_poi_fused_add_3   aten::add in Block_0, model.py:31       the same kernel: another number,
    candidate  triton_poi_fused_add_4   aten::add in Block_0, model.py:31       another tile, or another library

Only where graphs replay kernels or code is compiled: elsewhere the place of the launch says which kernels belong
together. Lines move when somebody edits a file, so they count only for names that the other side doesn't have.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from torch_tb_profiler.model.kinds import Kind, rows_of_kind
from torch_tb_profiler.model.origins.compiled import has_indirect_kernels
from torch_tb_profiler.model.origins.origins import origin_positions, origins
from torch_tb_profiler.model.trace import Trace, TracePair

_Places = frozenset[Hashable]


def align_kernels_by_origin(pair: TracePair) -> dict[str, str]:
    """Return base name -> candidate name of kernels with the same origins on both sides, if no others have them.

    A name may be aligned with itself. Names with an unknown origin are left out.
    """
    if not all(any(map(has_indirect_kernels, side)) for side in (pair.base, pair.candidate)):
        return {}
    base, candidate = ([*map(_group_places_by_name, side)] for side in (pair.base, pair.candidate))
    aligned: dict[str, str] = {}
    without_lines = [_join(side, lines=False) for side in (base, candidate)]
    _pair_unique(aligned, *without_lines)
    with_lines = [_join(side, lines=True) for side in (base, candidate)]
    names = [set(side) for side in with_lines]
    only = [{name: side[name] for name in names[i] - names[1 - i]} for i, side in enumerate(with_lines)]
    _pair_unique(aligned, *only)
    return aligned


def _group_places_by_name(trace: Trace) -> dict[str, set[tuple[Hashable, ...]] | None]:
    """Return the (operator, modules, nodes, lines) of the kernels of each name; None if one is unknown."""
    found, rows = origins(trace), rows_of_kind(trace, Kind.KERNEL)
    at, names = origin_positions(trace)[rows], trace.events.name[rows]
    at, names = at[names >= 0], names[names >= 0]
    columns = ("operator", "modules", "nodes", "lines")
    keys = np.stack([names, *(getattr(found, name)[at] for name in columns)], axis=1)
    places: dict[str, set[tuple[Hashable, ...]] | None] = {}
    for name, *codes in np.unique(keys, axis=0).tolist():
        text = trace.strings[name]
        values = [found.tables[c][code] if code >= 0 else None for c, code in zip(columns, codes, strict=True)]
        if values[0] == text:  # compiled kernels are operators of their own name
            values[0] = None
        own = places.setdefault(text, set())
        if all(value is None for value in values):
            places[text] = None
        elif own is not None:
            own.add(tuple(values))
    return places


def _join(side: Sequence[Mapping[str, set[tuple[Hashable, ...]] | None]], *, lines: bool) -> dict[str, _Places]:
    """Return the places of each name in all recordings of a side; names with an unknown one are left out."""
    joined: dict[str, set[Hashable]] = defaultdict(set)
    unknown: set[str] = set()
    for places in side:
        for name, values in places.items():
            distinct = {value if lines else value[:3] for value in values or ()}
            joined[name] |= distinct
            if not distinct or any(all(part is None for part in value) for value in distinct):
                unknown.add(name)
    return {name: frozenset(values) for name, values in joined.items() if name not in unknown}


def _pair_unique(aligned: dict[str, str], base: Mapping[str, _Places], candidate: Mapping[str, _Places]) -> None:
    """Add the names whose places one name has on each side, if neither is aligned yet."""
    matched = set(aligned.values())
    owners: tuple[dict[_Places, list[str]], ...] = (defaultdict(list), defaultdict(list))
    for side, by_place in zip((base, candidate), owners, strict=True):
        for name, places in side.items():
            by_place[places].append(name)
    for places, olds in owners[0].items():
        news = owners[1].get(places, [])
        if len(olds) == len(news) == 1 and olds[0] not in aligned and news[0] not in matched:
            aligned[olds[0]] = news[0]
