"""The query parameters of a request."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from werkzeug.wrappers import Request

from torch_tb_profiler.base.errors import UsageError

SELECTORS = ("run", "worker", "span")
"""The parameters that select a trace; each defaults to the first."""

PAGE_HEADER = "X-Profiler-Page"

MAX_QUERY_BYTES = 8192
"""Longest query string that is accepted."""


class Query(NamedTuple):
    """The parameters of a request: those that select a trace, and all others; the body where a route takes one."""

    run: str | None
    worker: str | None
    span: str | None
    params: Mapping[str, str]
    content: bytes = b""

    @property
    def names(self) -> tuple[str | None, str | None, str | None]:
        return self.run, self.worker, self.span


def read_body(request: Request, limit: int) -> bytes:
    """Return the body of a request of the page.

    Raises UsageError if it is larger than `limit` bytes or comes from another site's page: a browser lets only our
    own page set this header.
    """
    if request.headers.get(PAGE_HEADER) is None:
        raise UsageError(f"only the profiler's own page may save (header {PAGE_HEADER})")
    if request.content_length is None or request.content_length > limit:
        raise UsageError(f"more than {limit >> 20} MiB, or an unknown number of bytes, can't be saved")
    return request.get_data(cache=False)


def read_query(request: Request, known: Collection[str] | None) -> Query:
    """Parse the parameters of a request.

    Raises UsageError for a parameter that is given twice or is not in `known` (None: any is accepted).
    """
    if len(request.query_string) > MAX_QUERY_BYTES:
        raise UsageError(f"the query is longer than {MAX_QUERY_BYTES} bytes")
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
