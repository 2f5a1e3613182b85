"""The contract of a view: what it answers, over what, with which parameters.

A view turns its matter into a JSON-safe payload; it never touches a file or a request. There are five kinds:

    TraceView   one trace: a (run, worker, span)
    RunView     all workers of a (run, span), each reduced to something small where its trace was parsed
    RankView    one of these workers beside the others
    PairView    two sides of one or several traces: a candidate and the base it is compared with
    FileView    a file beside the traces of a run (a memory snapshot)

A tab is the view that opens it and the views it asks for later (its parts).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, NoReturn, TypeVar, get_args

import msgspec
from msgspec.structs import FieldInfo, fields

from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.base.memo import Memo

if TYPE_CHECKING:
    import numpy.typing as npt

    from torch_tb_profiler.model.trace import ClockKind, Trace, TracePair

P = TypeVar("P", bound=msgspec.Struct)
R = TypeVar("R")
S = TypeVar("S")
F = TypeVar("F")


NUMBERS = "numbers"
"""Key of the dtype in the annotation of a column of bytes."""

Int32s = Annotated[bytes, msgspec.Meta(extra={NUMBERS: "<i4"})]
UInt16s = Annotated[bytes, msgspec.Meta(extra={NUMBERS: "<u2"})]
UInt32s = Annotated[bytes, msgspec.Meta(extra={NUMBERS: "<u4"})]
Float64s = Annotated[bytes, msgspec.Meta(extra={NUMBERS: "<f8"})]
"""Columns of numbers that travel as little-endian bytes (base64 in JSON)."""


class NoParams(msgspec.Struct, frozen=True):
    """A view without parameters."""


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """`limit` rows from number `first` on; all of them by default."""

    first: Annotated[int, msgspec.Meta(ge=0)] = 0
    limit: Annotated[int, msgspec.Meta(ge=0)] | None = None

    @property
    def rows(self) -> slice:
        """Where the page lies among all rows."""
        return slice(self.first, None if self.limit is None else self.first + self.limit)


class FileParams(msgspec.Struct, frozen=True):
    """`file`: number in the listing of the run's files."""

    file: int = 0


BASE = ("base_run", "base_worker", "base_span")
"""Parameters of every pair: what `run`, `worker` and `span` (the candidate) are compared with."""

ALSO, BASE_ALSO = "also", "base_also"
"""Parameters of every pair: further recordings of the candidate and of the base, JSON lists of
[run, worker, span]."""

OF_PAIR = (*BASE, BASE_ALSO, ALSO)


def _no_details() -> NoReturn:
    raise LookupError("nothing more is known of this member")


@dataclass(frozen=True)
class Member(Generic[S]):
    """One worker of a run at the chosen span, and what its trace was reduced to.

    state   of its file; only a `ready` one may have a result
    reason  why there is no result: the file's error, what the trace lacks, that the span does not exist
    details  opens what the reduction's `details` make of its trace, if they are ready
    """

    worker: str
    rank: int | None
    span: str
    state: Literal["waiting", "loading", "ready", "failed"]
    reason: str | None
    result: S | None
    details: Callable[[], Any] = _no_details


class Members(tuple[Member[S], ...]):
    """The members of a run. The same object comes again until one of them changes, so that what is derived
    from all of them (`model.trace.derived`) is computed once."""

    _memo: Memo

    def __new__(cls, members: Iterable[Member[S]]) -> Members[S]:
        self = super().__new__(cls, tuple(members))
        self._memo = Memo()
        return self


@dataclass(frozen=True)
class Reduction(Generic[S]):
    """What a trace contributes to the views of its run.

    slug     the tab that it belongs to
    type     JSON-safe values; the bytes of bulk columns as `bytes`, or as `memoryview`, which are not copied
    reduce   the result of one trace, computed where the trace was parsed
    details  what a view takes of few members: kept apart, and opened when it is asked for (`Member.details`)
    """

    slug: str
    type: type[S]
    reduce: Callable[[Trace], S]
    details: Reduction[Any] | None = None

    @property
    def kept_as(self) -> str:
        """Its name in the cache, which is that of no view's answer."""
        return f"{self.slug}-reduced"


@dataclass(frozen=True)
class _View(Generic[P, R]):
    """
    slug     the word in the route, the command line and the docs; "<tab>/<part>" of a part
    title    for people
    params   its fields are the query parameters, its defaults the defaults
    payload  JSON-safe values in base units (ns, bytes, ratios 0..1)
    rows     the field of the payload that stands for it where one table is asked for (CSV, a data frame);
             where it has none of this name, its first list
    answers  what it answers, in a sentence; the first one of its payload where that says so
    """

    slug: str
    title: str
    params: type[P]
    payload: type[R]
    rows: str = field(default="rows", kw_only=True)
    answers: str = field(default="", kw_only=True)

    @property
    def tab(self) -> str:
        """The slug of the tab that the view is or is a part of."""
        return self.slug.partition("/")[0]


@dataclass(frozen=True)
class KeptColumns:
    """Tables derived from a trace that a server keeps with a large one and maps into memory.

    of       their columns by name
    restore  has the trace answer these tables from such columns
    """

    of: Callable[[Trace], Mapping[str, npt.NDArray[Any]]]
    restore: Callable[[Trace, Mapping[str, npt.NDArray[Any]]], object]


@dataclass(frozen=True)
class TraceView(_View[P, R]):
    """A view of one trace.

    kept    whether the answer without parameters stays in the cache with the trace: once it has been asked for
            (or a server has made it ahead), or from the start, made where the trace is parsed
    is_all  of a view that answers the first part of what its tab's view answers: whether an answer is all of that
    first   of a view that is asked with parameters: those that the page asks a trace with before anybody has done
            anything, whose answers a server makes ahead and keeps
    columns of such a view: what its other answers take, kept with them
    filters of a view that opens with a kept answer: parameters that rest on tables of their own, so that the first
            answer with them takes longest; a server derives these tables behind the tab
    """

    build: Callable[[Trace, P], R]
    kept: Literal["never", "asked", "parsed"] = "never"
    is_all: Callable[[R], bool] | None = field(default=None, kw_only=True)
    first: Callable[[Trace], tuple[P, ...]] | None = field(default=None, kw_only=True)
    columns: KeptColumns | None = field(default=None, kw_only=True)
    filters: tuple[P, ...] = field(default=(), kw_only=True)

    def answered_by(self, payload: R) -> tuple[str, ...]:
        """Slugs of the views that a payload is the answer of."""
        return (self.slug, self.tab) if self.is_all is not None and self.is_all(payload) else (self.slug,)


@dataclass(frozen=True)
class RunView(_View[P, R], Generic[P, R, S]):
    """A view of all workers of a run, from what `reduction` makes of each of their traces."""

    build: Callable[[Members[S], P], R]
    reduction: Reduction[S]


@dataclass(frozen=True)
class RankView(_View[P, R], Generic[P, R, S]):
    """A view of one worker of a run beside the others.

    build      gets what `alone` answers of the worker's trace, the worker's name, and all members
    alone      a view with the same parameters and payload
    most       of a run with more members, files that nobody has asked for are read only for who waits for the
               whole answer; until then `build` gets them as `waiting`
    """

    build: Callable[[R, str, Members[S], P], R]
    alone: TraceView[Any, R]
    reduction: Reduction[S]
    most: int


@dataclass(frozen=True)
class PairView(_View[P, R]):
    """A view of a candidate and the base it is compared with, each of one recording or several."""

    build: Callable[[TracePair, P], R]


@dataclass(frozen=True)
class FileView(_View[P, R], Generic[P, R, F]):
    """A view of a file beside the traces, as its importer parsed it; `params` are `FileParams`.

    format  the `kind` of an `ingest.formats.FileFormat`, whose `parse` gives what `build` takes
    """

    build: Callable[[F, P], R]
    format: str


View = (
    TraceView[Any, Any]
    | RunView[Any, Any, Any]
    | RankView[Any, Any, Any]
    | PairView[Any, Any]
    | FileView[Any, Any, Any]
)


def _available(_: Trace) -> str | None:
    return None


Section = Literal["", "Where the time goes", "Resources", "Compare"]
"""The headings of the navigation, in its order; "" stands above them all."""


_RECORDS: dict[ClockKind, str] = {
    "epoch": "events",
    "boot": "events",
    "iteration": "busy times of streams per iteration",
    "local": "samples",
}


@dataclass(frozen=True)
class Tab:
    """A place in the navigation.

    section      the heading of the navigation that it stands under
    view         what opens it
    unavailable  the reason why a trace has nothing to show here and what to set in the profiler, or None
    clocks       of the traces that it can show
    parts        what the tab asks for once it is open (the stacks of one operator, a tile of the timeline)
    """

    section: Section
    view: View
    unavailable: Callable[[Trace], str | None] = _available
    parts: tuple[View, ...] = ()
    clocks: tuple[ClockKind, ...] = ("epoch", "boot")

    @property
    def slug(self) -> str:
        return self.view.slug

    def reason(self, trace: Trace) -> str | None:
        """Why a trace has nothing to show here, or None."""
        if trace.clock not in self.clocks:
            return f"{trace.producer} recorded {_RECORDS[trace.clock]}, which say nothing about this"
        return self.unavailable(trace)

    @property
    def made_when_parsed(self) -> tuple[TraceView[Any, Any], ...]:
        """Its views whose answers are made where a trace is parsed."""
        views = (self.view, *self.parts)
        return tuple(view for view in views if isinstance(view, TraceView) and view.kept == "parsed")


def parse_params(params: type[P], given: Mapping[str, str]) -> P:
    """Text parameters (query string, --param) to a value of `params`.

    UsageError names an unknown parameter, a missing one or a value that cannot be read, and lists the options.
    """
    known = {field.name: field for field in fields(params)}
    values: dict[str, Any] = {}
    for name, text in given.items():
        if name not in known:
            options = ", ".join(sorted(known)) or "none"
            raise UsageError(f"unknown parameter {name!r}", hint=f"known parameters: {options}")
        values[name] = _parse_value(known[name], text)
    missing = [name for name, field in known.items() if field.required and name not in values]
    if missing:
        raise UsageError(f"missing parameter {missing[0]!r}")
    try:
        return params(**values)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _parse_value(field: FieldInfo, text: str) -> Any:
    try:
        return msgspec.convert(text, field.type, strict=False)
    except msgspec.ValidationError as error:
        options = options_of(field.type)
        hint = f"one of {', '.join(options)}" if options else str(error)
        raise UsageError(f"parameter {field.name!r} cannot be {text!r}", hint=hint) from error


def options_of(kind: Any) -> list[str]:
    """The values of a parameter that takes one of some texts; [] of every other."""
    return [option for option in get_args(kind) if isinstance(option, str)]
