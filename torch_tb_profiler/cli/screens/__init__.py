"""Views as a terminal shows them: the finding, a few facts, and tables with the page's columns and words.

A tab has a module named like its slug, whose `lay_out` arranges the payload. Parts of tabs, and tabs without such
a module, are arranged from the names of their fields.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from torch_tb_profiler.cli.screens.generic import lay_out
from torch_tb_profiler.cli.screens.screen import Screen


def screen_of(slug: str, payload: dict[str, Any], rows: str = "rows") -> Screen:
    """Return the screen of a view's payload; `rows` is the table that comes first if the view has no layout."""
    module = f"{__name__}.{slug}"
    if slug.isidentifier() and find_spec(module) is not None:
        screen: Screen = import_module(module).lay_out(payload)
        return screen
    return lay_out(payload, rows)
