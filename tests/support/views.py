"""Views that exist for a test, and payloads as they travel."""

from __future__ import annotations

import base64
import sys
from types import ModuleType
from typing import Any

import msgspec
import numpy as np
import pytest

from torch_tb_profiler import views
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import Tab, TraceView, parse_params
from torch_tb_profiler.views import find_view


def add_tab(monkeypatch: pytest.MonkeyPatch, tab: Tab) -> None:
    """Register a tab as a folder of `views` would be, until the test ends."""
    module = ModuleType(f"{views.__name__}.{tab.slug}")
    module.TAB = tab  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(views, "SLUGS", (*views.SLUGS, tab.slug))


def ask(trace: Trace, slug: str, **params: object) -> Any:
    """Return the payload as it travels."""
    view = find_view(slug)
    assert isinstance(view, TraceView)
    given = {name: str(value) for name, value in params.items()}
    return msgspec.json.decode(msgspec.json.encode(view.build(trace, parse_params(view.params, given))))


def column(payload: Any, name: str, kind: str) -> list[Any]:
    """Return a column of numbers of a payload."""
    return list(np.frombuffer(base64.b64decode(payload[name]), kind).tolist())


def words(text: Any) -> str:
    """Return a text of a payload as it travels, without its links."""
    return "".join(phrase["text"] for phrase in text)
