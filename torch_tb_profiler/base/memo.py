"""Derived tables, cached beside the immutable value that they were derived from."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property, wraps
from threading import Lock, RLock
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, get_type_hints

import msgspec

P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M", bound="Memoized")


class TableStore(Protocol):
    """A store of the tables of one trace, which other processes read, too.

    prepares  this process prepares what others ask for, so that it saves tables that are `prepared`, too
    """

    @property
    def prepares(self) -> bool: ...

    def load(self, name: str, type_of: Callable[[], Any]) -> tuple[Any] | None:
        """Return (table,), or None if it isn't there or is damaged; only one that is there needs the type.

        In a tuple, as a table may be None itself.
        """
        ...

    def save(self, name: str, table: object) -> None:
        """Save a table; a failure only costs time."""
        ...


class Memo(dict[Hashable, Any]):
    """A cache of tables by name and arguments. It stays in its process: a pickled copy is empty.

    store  where tables that are `stored` are saved, None if nowhere
    """

    def __init__(self) -> None:
        super().__init__()
        self.store: TableStore | None = None
        self._guard = Lock()
        self._locks: dict[Hashable, Any] = {}

    def lock_of(self, key: Hashable) -> Any:
        """Return the lock to hold while the table `key` is derived.

        Each table has its own lock, so that a request doesn't wait for what is prefetched. A thread also holds the
        locks of the tables that its table is derived from; these form no cycle, so there is no deadlock.
        """
        with self._guard:
            return self._locks.setdefault(key, RLock())

    def __reduce__(self) -> tuple[type[Memo], tuple[()]]:
        return Memo, ()


class MemoizedStruct(msgspec.Struct, frozen=True, dict=True):
    """A struct with a memo. A changed copy (`msgspec.structs.replace`) has one of its own."""

    @cached_property
    def _memo(self) -> Memo:
        return Memo()


class Memoized(Protocol):
    """An immutable value with a memo: a trace, the members of a run."""

    @property
    def _memo(self) -> Memo: ...


def derived(function: Callable[Concatenate[M, P], T]) -> Callable[Concatenate[M, P], T]:
    """Cache the table that `function` derives from a trace in the trace's memo.

        @derived
        def lanes_of(trace: Trace, python: bool) -> Lanes: ...

    There is one table per combination of the further arguments, which must be hashable. If several threads ask at
    once, the first computes and the others wait for it.
    """
    return _memoized(function, lambda trace, key, derive: derive())


def stored(function: Callable[Concatenate[M, P], T]) -> Callable[Concatenate[M, P], T]:
    """Cache a table like `derived`, and save it in the store of the trace's memo, if it has one.

        @stored
        def device_items(trace: Trace) -> DeviceItems: ...

    For tables that several views share and that take longer to derive than to read. The annotation of the result
    says what is read: arrays, in structs of msgspec, named tuples, tuples and dictionaries beside plain values.
    Arrays that were read can't be written to, so nothing may change the table. Further arguments are numbers, or
    None, as they are part of a file's name.
    """

    return _memoized(function, _restoring(function, lambda store: True))


def prepared(function: Callable[Concatenate[M, P], T]) -> Callable[Concatenate[M, P], T]:
    """Cache a table like `stored`, but let only a process that prepares tabs keep it (`TableStore.prepares`).

        @prepared
        def operators(trace: Trace) -> Operators: ...

    For tables that take about as long to write as to derive: a filter of a tab that was just opened should read
    them, but a command that is asked once would only take longer.
    """
    return _memoized(function, _restoring(function, lambda store: store.prepares))


def _restoring(
    function: Callable[Concatenate[M, P], T], keeps: Callable[[TableStore], bool]
) -> Callable[[M, tuple[Hashable, ...], Callable[[], T]], T]:
    """Return how to read a table from the store, or else to derive it and save it where `keeps` says so."""

    def restore_or_derive(trace: M, key: tuple[Hashable, ...], derive: Callable[[], T]) -> T:
        store = trace._memo.store
        if store is None:
            return derive()
        name = ".".join(map(str, key))
        found: tuple[T] | None = store.load(name, lambda: get_type_hints(function)["return"])
        if found is not None:
            return found[0]
        table = derive()
        if keeps(store):
            store.save(name, table)
        return table

    return restore_or_derive


def _memoized(
    function: Callable[Concatenate[M, P], T], obtain: Callable[[M, tuple[Hashable, ...], Callable[[], T]], T]
) -> Callable[Concatenate[M, P], T]:
    """Cache what `obtain` returns for (trace, key of the table, how to derive it)."""
    name, defaults = _table_name(function), _defaults(function)

    @wraps(function)
    def memoized(trace: M, /, *args: P.args, **kwargs: P.kwargs) -> T:
        # An argument left to its default has the same key as one given with that value.
        rest = (kwargs.get(parameter, default) for parameter, default in defaults[len(args) :])
        memo, key = trace._memo, (name, *args, *rest)
        if key not in memo:
            with memo.lock_of(key):
                if key not in memo:
                    memo[key] = obtain(trace, key, lambda: function(trace, *args, **kwargs))
        return memo[key]  # type: ignore[no-any-return]

    return memoized


def _defaults(function: Any) -> list[tuple[str, Any]]:
    """Return (name, default) of each argument after the first one; `inspect.signature` takes 50 times as long."""
    code, defaults = function.__code__, function.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount]
    values = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True)) | (
        function.__kwdefaults__ or {}
    )
    keywords = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    return [(each, values.get(each)) for each in (*names[1:], *keywords)]


def seed_derived(trace: Memoized, table: Callable[..., T], *args: Hashable, value: T) -> None:
    """Put a table that another process derived into the memo, unless it has been derived here already.

    `args` are all further arguments of `table`, in order.
    """
    trace._memo.setdefault((_table_name(table), *args), value)


def derived_before(trace: Memoized, table: Callable[..., T], *args: Hashable) -> T | None:
    """Return a table that is in the memo, None if it has to be derived. `args` are as for `seed_derived`."""
    found: T | None = trace._memo.get((_table_name(table), *args))
    return found


def _table_name(table: Any) -> str:
    return f"{table.__module__}.{table.__qualname__}"
