"""The contract of a view: its input, its parameters, and its payload.

A view turns its input into a JSON-safe payload; it never touches a file or a request. There are six kinds:

    TraceView   one trace: a (run, worker, span)
    RunView     all workers of a (run, span), each reduced to something small when its trace was loaded
    RankView    one of these workers next to the others
    PairView    two sides of one or several traces: a candidate and the base it is compared with
    FileView    a file next to the traces of a run (a memory snapshot)
    DumpsView   the flight recorder dumps of a run, one per rank

A tab consists of the view that opens it and the views that it requests later (its parts).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, cached_property
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, NoReturn, TypeVar, get_args

import msgspec
from msgspec.structs import FieldInfo, fields

from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.base.memo import Memo
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.base.threadsafe import threadsafe

if TYPE_CHECKING:
    import numpy.typing as npt

    from torch_tb_profiler.model.flight_recorder import JobDumps
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
    """A page of `limit` rows from row `first` on; all rows by default."""

    first: Annotated[int, msgspec.Meta(ge=0)] = 0
    limit: Annotated[int, msgspec.Meta(ge=0)] | None = None

    @property
    def rows(self) -> slice:
        """Return the slice of all rows that is on the page."""
        return slice(self.first, None if self.limit is None else self.first + self.limit)


class FileParams(msgspec.Struct, frozen=True):
    """`file` is a number in the listing of the run's files.

    The default is the file of the chosen worker and span, else the first file of the view's format.
    """

    file: int | None = None


BASE = ("base_run", "base_worker", "base_span")
"""Parameters of every pair: the base that `run`, `worker` and `span` (the candidate) are compared with."""

ALSO, BASE_ALSO = "also", "base_also"
"""Parameters of every pair: further recordings of the candidate and of the base, JSON lists of
[run, worker, span]."""

OF_PAIR = (*BASE, BASE_ALSO, ALSO)


def _raise_no_details() -> NoReturn:
    raise LookupError("this member has no details")


class TracedIterations(msgspec.Struct, frozen=True):
    """A trace of the same process as a member's iterations: which of them it holds, and where.

    windows  number of the iteration -> begin and end in the trace, ns
    """

    run: str
    worker: str
    span: str
    windows: Mapping[int, tuple[int, int]]


class Member(msgspec.Struct, Generic[S], frozen=True):
    """One worker of a run at the selected span, with the reduction of its trace.

    state    of its file; only a `ready` one may have a result
    reason   why there is no result: the file's error, what the trace lacks, or that the span doesn't exist
    details  loads the result of the reduction's `details` for its trace
    traced   traces that were joined with the member's iterations
    """

    worker: str
    rank: int | None
    span: str
    state: Literal["waiting", "loading", "ready", "failed"]
    reason: str | None
    result: S | None
    details: Callable[[], Any] = _raise_no_details
    traced: tuple[TracedIterations, ...] = ()


class Members(tuple[Member[S], ...]):
    """The members of a run.

    Requests share one object until a member changes, so that what is derived from all of them is computed once
    (`base.memo.derived`).
    """

    _memo: Memo

    def __new__(cls, members: Iterable[Member[S]]) -> Members[S]:
        self = super().__new__(cls, tuple(members))
        self._memo = Memo()
        return self


class Reduction(msgspec.Struct, Generic[S], frozen=True):
    """The small result of a trace that the views of its run are built from.

    slug     the tab that it belongs to
    type     JSON-safe values; the bytes of bulk columns as `bytes`, or as `memoryview`, which are not copied
    reduce   computes the result of one trace when the trace is loaded
    details  what a view needs of few members: cached separately, and loaded on demand (`Member.details`)
    on_load  computed when a trace is loaded even if its view doesn't open a tab
    traced   members know the traces that were joined with their iterations (`Member.traced`)
    """

    slug: str
    type: type[S]
    reduce: Callable[[Trace], S]
    details: Reduction[Any] | None = None
    on_load: bool = False
    traced: bool = False

    @property
    def cache_name(self) -> str:
        """Return the view's name in the cache, which differs from the names of all views' answers."""
        return f"{self.slug}-reduced"


class _ViewOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What few views say about themselves, by keyword; see `_View`."""

    rows: str = "rows"
    answers: str = ""


class _View(_ViewOptions, Generic[P, R], frozen=True):
    """What all views have in common.

    slug     the word in the route, the command line and the docs; "<tab>/<part>" of a part
    title    the name on screen
    params   its fields are the query parameters, its defaults the defaults
    payload  JSON-safe values in base units (ns, bytes, ratios 0..1)
    rows     the field of the payload that is exported as a table (CSV, a data frame); if it has no such field,
             its first list
    answers  a sentence that describes its answer; by default the first sentence of its payload's docstring
    """

    slug: str
    title: str
    params: type[P]
    payload: type[R]

    @property
    def tab(self) -> str:
        """Return the slug of the tab that the view is or is a part of."""
        return self.slug.partition("/")[0]


class CachedColumns(msgspec.Struct, frozen=True):
    """Tables derived from a trace that a server caches with a large trace and maps into memory.

    of       returns the columns of the tables by name
    restore  has the trace use such columns for these tables
    """

    of: Callable[[Trace], Mapping[str, npt.NDArray[Any]]]
    restore: Callable[[Trace, Mapping[str, npt.NDArray[Any]]], object]


class TraceView(_View[P, R], frozen=True):
    """A view of one trace.

    cached   when the answer without parameters is cached: never, on the first request (or when a server
             prefetches it), or when the trace is loaded
    is_all   for a view that answers the first part of its tab's view: returns True if its payload is complete
    first    for a view that is requested with parameters: returns those that the page requests first, whose
             answers a server prefetches
    columns  for such a view: the tables that its other answers need, cached with the first answers
    filters  for a view with a cached answer: parameters that need tables of their own, so that the first answer
             with them takes longest. A server prefetches these answers, too, and derives the tables after the
             tab was opened
    previews whether it answers what can be shown of a file while that is being read
    captures whether its parameter `capture` names another run, whose graph captures are added to the trace
    """

    build: Callable[[Trace, P], R]
    cached: Literal["never", "on_request", "on_load"] = "never"
    is_all: Callable[[R], bool] | None = None
    first: Callable[[Trace], tuple[P, ...]] | None = None
    columns: CachedColumns | None = None
    filters: tuple[P, ...] = ()
    captures: bool = False
    previews: bool = False

    def answered_by(self, payload: R) -> tuple[str, ...]:
        """Return the slugs of the views that a payload answers."""
        return (self.slug, self.tab) if self.is_all is not None and self.is_all(payload) else (self.slug,)


class RunView(_View[P, R], Generic[P, R, S], frozen=True):
    """A view of all workers of a run, built from the reduction of each trace."""

    build: Callable[[Members[S], P], R]
    reduction: Reduction[S]


class RankView(_View[P, R], Generic[P, R, S], frozen=True):
    """A view of one worker of a run next to the others.

    build        gets the payload of `alone` for the worker's trace, the worker's name, and all members
    alone        a view with the same parameters and payload
    max_members  in a larger run, files that were not requested are loaded only if the request waits; otherwise
                 `build` gets them as `waiting`
    """

    build: Callable[[R, str, Members[S], P], R]
    alone: TraceView[Any, R]
    reduction: Reduction[S]
    max_members: int


class PairView(_View[P, R], frozen=True):
    """A view of a candidate and the base it is compared with, each of one recording or several."""

    build: Callable[[TracePair, P], R]


class FileView(_View[P, R], Generic[P, R, F], frozen=True):
    """A view of a file next to the traces, as its importer parsed it; `params` are `FileParams`.

    format   the `kind` of an `ingest.formats.FileFormat`, whose `parse` returns the input of `build`
    cached   whether the answer without parameters but `file` is cached with a file that is loaded as traces are
    prepare  derives what further requests need; a server calls it in the background after a cached answer
    """

    build: Callable[[F, P], R]
    format: str
    cached: bool = False
    prepare: Callable[[F], object] | None = None


class DumpsView(_View[P, R], frozen=True):
    """A view of the flight recorder dumps of a run, which may have no trace."""

    build: Callable[[JobDumps, P], R]


View = (
    TraceView[Any, Any]
    | RunView[Any, Any, Any]
    | RankView[Any, Any, Any]
    | PairView[Any, Any]
    | FileView[Any, Any, Any]
    | DumpsView[Any, Any]
)


def _available(_: Trace) -> str | None:
    return None


Section = Literal["", "Where the time goes", "Resources", "Compare"]
"""The headings of the navigation, in order; tabs under "" come first, without a heading."""


_RECORDS: dict[ClockKind, str] = {
    "epoch": "events",
    "boot": "events",
    "iteration": "busy times of streams per iteration",
    "local": "samples",
}


class Tab(msgspec.Struct, frozen=True, dict=True):
    """A tab in the navigation.

    section      the heading of the navigation that it is under
    view         the view that opens it
    unavailable  returns why a trace has nothing to show here and which profiler option would record it, or None
    clocks       the kinds of clocks of traces that it can show
    parts        views that the tab requests once it is open (the stacks of one operator, a tile of the timeline)
    of_job       returns further ones about all ranks of a job, imported once one of them is asked for
    """

    section: Section
    view: View
    unavailable: Callable[[Trace], str | None] = _available
    parts: tuple[View, ...] = ()
    clocks: tuple[ClockKind, ...] = ("epoch", "boot")
    of_job: Callable[[], tuple[View, ...]] = tuple

    @cached_property
    def views(self) -> tuple[View, ...]:
        """Return the view that opens the tab, followed by all its parts."""
        return (self.view, *self.parts, *self.of_job())

    @property
    def slug(self) -> str:
        return self.view.slug

    def reason(self, trace: Trace) -> str | None:
        """Return why a trace has nothing to show here, or None."""
        if trace.snapshot is not None:
            if self.opens_files:
                return None
            compare = ", or compare two snapshots with `memory/compare`" if self.section == "Compare" else ""
            return f"a memory snapshot records only the allocator; record a trace too{compare}"
        if trace.clock not in self.clocks:
            return f"{trace.producer} recorded only {_RECORDS[trace.clock]}, so this view has no data"
        return self.unavailable(trace)

    @property
    def opens_files(self) -> bool:
        """Return whether views of the tab show files, such as memory snapshots."""
        return any(isinstance(view, FileView) for view in (self.view, *self.parts))

    @property
    def reductions_on_load(self) -> tuple[Reduction[Any], ...]:
        """Return the reductions that are computed, with their details, when a trace is loaded."""
        views = [view for view in (self.view, *self.parts) if isinstance(view, RunView)]
        return tuple(view.reduction for view in views if view is self.view or view.reduction.on_load)

    @property
    def views_built_on_load(self) -> tuple[TraceView[Any, Any], ...]:
        """Return the tab's views whose answers are built when a trace is loaded."""
        views = (self.view, *self.parts)
        return tuple(view for view in views if isinstance(view, TraceView) and view.cached == "on_load")


def parse_params(params: type[P], texts: Mapping[str, str]) -> P:
    """Convert text parameters (query string, --param) to a value of `params`.

    Raises UsageError for an unknown or missing parameter or an invalid value, with the valid options.
    """
    known = _fields_by_name(params)
    values: dict[str, Any] = {}
    for name, text in texts.items():
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


@cache
def _fields_by_name(params: type) -> dict[str, FieldInfo]:
    """Return the parameters of a view: each time anew, msgspec would compile all their types from text."""
    return {field.name: field for field in fields(params)}


def _parse_value(field: FieldInfo, text: str) -> Any:
    try:
        return msgspec.convert(text, threadsafe(field.type), strict=False)
    except msgspec.ValidationError as error:
        options = options_of(field.type)
        hint = f"one of {', '.join(options)}" if options else _describe_expected(str(error))
        raise UsageError(f"parameter {field.name!r} cannot be {text!r}", hint=hint) from error


_EXPECTED = lazy_regex(r"Expected `(int|float|bool)(?: \| null)?`(?: ([<>]=?) (\S+))?(?:, got `\w+`)?")
_KINDS = {"int": "a whole number", "float": "a number", "bool": "true or false"}
_COMPARISONS = {">=": " of at least", "<=": " of at most", ">": " above", "<": " below"}


def _describe_expected(error: str) -> str:
    """Return in words what a message of msgspec expects ("a whole number of at least 1"), else the message."""
    match = _EXPECTED.fullmatch(error)
    if match is None:
        return error
    kind, comparison, limit = match.groups()
    return _KINDS[kind] + (f"{_COMPARISONS[comparison]} {limit}" if comparison else "")


def options_of(kind: Any) -> list[str]:
    """Return the valid values of a parameter that is one of several texts; [] for any other."""
    return [option for option in get_args(kind) if isinstance(option, str)]
