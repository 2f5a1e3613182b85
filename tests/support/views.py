"""Views that exist for a test."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from torch_tb_profiler import views
from torch_tb_profiler.view import Tab


def add_tab(monkeypatch: pytest.MonkeyPatch, tab: Tab) -> None:
    """Register a tab as a folder of `views` would be, until the test ends."""
    module = ModuleType(f"{views.__name__}.{tab.slug}")
    module.TAB = tab  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(views, "SLUGS", (*views.SLUGS, tab.slug))
