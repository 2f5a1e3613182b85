"""The views, one module each; a new one is a module and a line here."""

from __future__ import annotations

from typing import Any

from torch_tb_profiler.view import View
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


def all_views() -> tuple[View[Any, Any], ...]:
    """Every view, in the order of the navigation."""
    views = (
        overview.VIEW,
        operators.VIEW,
        kernels.VIEW,
        trace.VIEW,
        memory.VIEW,
        distributed.VIEW,
        diff.VIEW,
        modules.VIEW,
        lightning.VIEW,
    )
    return tuple(sorted(views, key=lambda view: (view.order, view.slug)))


def with_parts() -> tuple[View[Any, Any], ...]:
    """Every view, each followed by its parts."""
    return tuple(each for view in all_views() for each in (view, *view.parts))
