"""The table of routes, from which the application and the OpenAPI document are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch_tb_profiler.base.cut import ExcerptRange
from torch_tb_profiler.http import bodies, handlers
from torch_tb_profiler.http.query import SELECTORS

VIEW = "/view/"
"""What the paths of all views begin with."""


@dataclass(frozen=True)
class Route:
    """One row of the route table.

    takes    its query parameters, in the order of the documentation; None: those of the view in the path
    body     what a 200 answers; `bytes` for a file
    handler  (session, query) to a body; of a view (session, query, slug)
    """

    path: str
    method: str
    takes: tuple[str, ...] | None
    body: type[Any]
    handler: Callable[..., Any]
    summary: str


_CUT = (*SELECTORS, *ExcerptRange.__struct_fields__)

ROUTES = (
    Route("/runs", "GET", (), bodies.Runs, handlers.runs, "All runs and how many of their files are loaded"),
    Route("/workers", "GET", ("run",), bodies.Workers, handlers.workers, "The workers of a run with their spans"),
    Route("/spans", "GET", ("run", "worker"), bodies.Spans, handlers.spans, "The spans of a worker"),
    Route("/state", "GET", SELECTORS, bodies.State, handlers.state, "The state of one file"),
    Route("/retry", "POST", SELECTORS, bodies.State, handlers.retry, "Load a failed file again"),
    Route("/health", "GET", SELECTORS, bodies.Health, handlers.health, "What was skipped or repaired, per file"),
    Route("/views", "GET", SELECTORS, bodies.Views, handlers.views, "The views and whether a file has them"),
    Route("/download", "GET", SELECTORS, bytes, handlers.download, "The file of a span as it is stored"),
    Route("/slice", "GET", _CUT, bytes, handlers.slice_, "A part of a trace as a trace file of its own"),
    Route(f"{VIEW}{{slug}}", "GET", None, dict, handlers.view, "The payload of a view, or how far its file is"),
)
