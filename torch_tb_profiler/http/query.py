"""What a request asks for."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from werkzeug.wrappers import Request

from torch_tb_profiler.base.errors import UsageError

SELECTORS = ("run", "worker", "span")
"""The parameters that name a trace; each defaults to the first."""

MAX_QUERY = 8192
"""Bytes of a query string."""


class Query(NamedTuple):
    """The parameters of a request: those that name a trace, and all others."""

    run: str | None
    worker: str | None
    span: str | None
    params: Mapping[str, str]

    @property
    def names(self) -> tuple[str | None, str | None, str | None]:
        return self.run, self.worker, self.span


def read_query(request: Request, known: Collection[str] | None) -> Query:
    """The parameters of a request; UsageError for one that is given twice or is not `known` (None: any may be)."""
    if len(request.query_string) > MAX_QUERY:
        raise UsageError("the query is too long")
    params: dict[str, str] = {}
    for name, values in request.args.lists():
        if len(values) > 1:
            raise UsageError(f"parameter {name!r} is given {len(values)} times")
        if known is not None and name not in known:
            options = ", ".join(known) or "none"
            raise UsageError(f"unknown parameter {name!r}", hint=f"known parameters: {options}")
        params[name] = values[0]
    run, worker, span = (params.pop(name, None) for name in SELECTORS)
    return Query(run, worker, span, params)
