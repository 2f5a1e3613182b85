"""Views as a terminal shows them: the finding, a few facts, and tables with the page's columns and words.

A tab may have a module named like its slug: `lay_out` arranges the payload of the tab's view, `lay_out_ranks` that
of `memory/ranks`. Others are arranged from the names of their fields.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from torch_tb_profiler.api.tables import packed_fields
from torch_tb_profiler.cli.screens.generic import lay_out
from torch_tb_profiler.cli.screens.screen import Screen
from torch_tb_profiler.views import SLUGS, views_of


def screen_of(slug: str, payload: dict[str, Any], rows: str = "rows") -> Screen:
    """Return the screen of a view's payload; `rows` is the table that comes first if the view has no layout."""
    tab, _, part = slug.partition("/")
    module = f"{__name__}.{tab}"
    if tab.isidentifier() and find_spec(module) is not None:
        arrange = getattr(import_module(module), f"lay_out_{part}" if part else "lay_out", None)
        if arrange is not None:
            screen: Screen = arrange(payload)
            return screen
    packed = _packed_fields(slug)
    return lay_out({key: value for key, value in payload.items() if key not in packed}, rows)


def _packed_fields(slug: str) -> frozenset[str]:
    """Return the fields of a view's payload that only a program can read; none of what is no view."""
    tab = slug.partition("/")[0]
    views = views_of(tab) if tab in SLUGS else ()
    return next((packed_fields(view.payload) for view in views if view.slug == slug), frozenset())
