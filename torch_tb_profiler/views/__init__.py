"""The views, one folder each; a new one is a folder and a line here.

The list is data: importing it loads no view, so that help texts cost nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from torch_tb_profiler.base.errors import NotFoundError

if TYPE_CHECKING:
    from torch_tb_profiler.view import Tab, View

SLUGS: tuple[str, ...] = (
    "overview",
    "operators",
    "kernels",
    "roofline",
    "trace",
    "idle",
    "critical_path",
    "modules",
    "origins",
    "lightning",
    "serving",
    "distributed",
    "overlap",
    "memory",
    "hangs",
    "diff",
)
"""The folders of all tabs, in the order of the navigation."""

CACHED_VIEWS = frozenset(
    (
        "overview",
        "overview/preview",
        "operators",
        "kernels",
        "roofline",
        "trace",
        "idle",
        "critical_path",
        "modules",
        "origins",
        "lightning",
        "serving",
        "serving/origins",
        "memory",
        "memory/snapshot",
    )
)
"""Views whose answers are cached (their `cached`); a cached answer is returned without importing them."""


def all_tabs() -> tuple[Tab, ...]:
    """Return all tabs in the order of the navigation."""
    return tuple(map(find_tab, SLUGS))


def all_views() -> tuple[View, ...]:
    """Return the view of each tab, followed by its parts."""
    return tuple(view for slug in SLUGS for view in views_of(slug))


def views_of(slug: str) -> tuple[View, ...]:
    """Return the view of a tab, followed by its parts; no other tab is imported."""
    return find_tab(slug).views


def find_view(slug: str) -> View:
    """Return the view with this slug; raise NotFoundError if there is none."""
    tab = slug.partition("/")[0]
    if slug in SLUGS:
        return find_tab(slug).view  # without importing what its other views need
    for view in views_of(tab) if tab in SLUGS else ():
        if view.slug == slug:
            return view
    raise NotFoundError(f"there is no view {slug!r}", hint=f"views: {', '.join(SLUGS)}")


def find_tab(slug: str) -> Tab:
    """Return the tab with one of `SLUGS`; no other tab is imported."""
    tab: Tab = import_module(f"{__name__}.{slug}").TAB
    return tab
