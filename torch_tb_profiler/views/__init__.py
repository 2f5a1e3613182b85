"""The views, one folder each; a new one is a folder and a line here."""

from __future__ import annotations

from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.view import Tab, View
from torch_tb_profiler.views import (
    diff,
    distributed,
    kernels,
    lightning,
    memory,
    modules,
    operators,
    overview,
    trace,
)

TABS: tuple[Tab, ...] = (
    overview.TAB,
    operators.TAB,
    kernels.TAB,
    trace.TAB,
    modules.TAB,
    lightning.TAB,
    distributed.TAB,
    memory.TAB,
    diff.TAB,
)


def all_tabs() -> tuple[Tab, ...]:
    """Every tab, in the order of the navigation."""
    return TABS


def all_views() -> tuple[View, ...]:
    """The view of every tab, each followed by its parts."""
    return tuple(view for tab in TABS for view in (tab.view, *tab.parts))


def find_view(slug: str) -> View:
    """A view by its slug; NotFoundError lists those of the tabs."""
    for view in all_views():
        if view.slug == slug:
            return view
    raise NotFoundError(f"there is no view {slug!r}", hint=f"views: {', '.join(tab.slug for tab in TABS)}")
