"""The contract of a view: what a tab shows, over what, with which parameters.

A view turns one Trace (scope `worker`), what all workers of a run were reduced to (`run`) or two Traces
(`pair`) into a JSON-safe payload. It never touches a file or a request; the session hands it its matter and
the surfaces encode the payload.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from enum import Enum
from typing import Any, BinaryIO, Generic, Literal, TypeVar, get_type_hints

from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.model.trace import Memo, Trace

P = TypeVar("P")
R = TypeVar("R")
S = TypeVar("S")


class Scope(str, Enum):
    """What one payload covers: one (run, worker, span), all workers of a (run, span), two triples.

    A file lies beside the traces of a run and is none (a memory snapshot); the parameter `file` says which.
    Of a pair, `run`, `worker` and `span` name the candidate, the parameters `BASE` what it is compared with.
    """

    WORKER = "worker"
    RUN = "run"
    PAIR = "pair"
    FILE = "file"


BASE = ("base_run", "base_worker", "base_span")


@dataclass(frozen=True)
class Member(Generic[S]):
    """One worker of a run at the chosen span, and what its trace was reduced to.

    state   of its file; only a `ready` one may have a result
    reason  why there is no result: the file's error, what the trace lacks, that the span does not exist
    """

    worker: str
    rank: int | None
    span: str
    state: Literal["waiting", "loading", "ready", "failed"]
    reason: str | None
    result: S | None


class Members(tuple[Member[S], ...]):
    """The members of a run. The same object comes again until one of them changes, so that what is derived
    from all of them (`model.trace.derived`) is computed once."""

    _memo: Memo

    def __new__(cls, members: Iterable[Member[S]]) -> Members[S]:
        self = super().__new__(cls, tuple(members))
        self._memo = Memo()
        return self


@dataclass(frozen=True)
class StoredFile:
    """A file of a run that is no trace, open for reading."""

    name: str
    size: int
    stream: BinaryIO


@dataclass(frozen=True)
class FileParams:
    """`file`: number in the listing of the run's files."""

    file: int = 0


@dataclass(frozen=True)
class View(Generic[P, R]):
    """One tab.

    slug         the word in the route, the command line, the file names and the docs
    params       a frozen dataclass; its fields are the query parameters, its defaults the defaults
    payload      a frozen dataclass of JSON-safe values in base units (ns, bytes, ratios 0..1)
    unavailable  the reason why a trace has nothing to show here and what to set in the profiler, or None
    build        the payload, from (trace, params); (Members, params) if the scope is a run;
                 (candidate trace, base trace, params) if it is a pair; (what `reduce` made, params) of a file
    reduce       scope `run`: the small result of one trace, computed where the trace was parsed;
                 scope `file`: what is read from a StoredFile, kept for further questions
    reduced      scope `run`: its type, a dataclass of JSON-safe values, bulk columns as `bytes`
    parts        what a tab asks for once it is open (the stacks of one operator, a tile of the timeline):
                 views of their own with slugs "<tab>/<part>" and without a place in the navigation;
                 those of a run use the results that their tab's `reduce` made
    """

    slug: str
    title: str
    order: int
    scope: Scope
    params: type[P]
    payload: type[R]
    unavailable: Callable[[Trace], str | None]
    build: Callable[..., R]
    reduce: Callable[[Any], Any] | None = None
    reduced: type[Any] | None = None
    parts: tuple[View[Any, Any], ...] = ()


@dataclass(frozen=True)
class NoParams:
    """A view without parameters."""


def parse_params(params: type[P], given: Mapping[str, str]) -> P:
    """Text parameters (query string, --param) to a Params value.

    Fields may be str, int, float, bool or an optional of these. UsageError names an unknown parameter
    or a value that cannot be read, and lists what is possible.
    """
    known = {row.name: row for row in fields(params)}  # type: ignore[arg-type]
    hints = get_type_hints(params)
    values: dict[str, Any] = {}
    for name, text in given.items():
        if name not in known:
            options = ", ".join(sorted(known)) or "none"
            raise UsageError(f"unknown parameter {name!r}", hint=f"known parameters: {options}")
        values[name] = _parse_value(name, hints[name], text)
    missing = [
        name
        for name, row in known.items()
        if name not in values and row.default is MISSING and row.default_factory is MISSING
    ]
    if missing:
        raise UsageError(f"missing parameter {missing[0]!r}")
    try:
        return params(**values)
    except ValueError as error:
        raise UsageError(str(error)) from error


_BOOLS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


def _parse_value(name: str, hint: Any, text: str) -> Any:
    kinds = [kind for kind in getattr(hint, "__args__", (hint,)) if kind is not type(None)]
    for kind in kinds:
        if kind is bool and text.lower() in _BOOLS:
            return _BOOLS[text.lower()]
        if kind in (int, float):
            try:
                return kind(text)
            except ValueError:
                continue
        if kind is str:
            return text
    wanted = " or ".join(kind.__name__ for kind in kinds)
    raise UsageError(f"parameter {name!r} cannot be {text!r}", hint=f"give a value of type {wanted}")
