"""The work on one file, as a function of strings so that any executor can run it anywhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from shlex import quote

import msgspec

from torch_tb_profiler.base.errors import StorageError, TooLargeError
from torch_tb_profiler.cache import Cache, cache_key
from torch_tb_profiler.executors import ProgressTuple, report_progress
from torch_tb_profiler.ingest import Progress, read_trace, without_gc
from torch_tb_profiler.model.health import Note
from torch_tb_profiler.model.ranks import rank, split_ranks
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.storage import Location, open_location
from torch_tb_profiler.view import RunView, TraceView
from torch_tb_profiler.views import all_tabs

FACTS = "facts"


@dataclass(frozen=True)
class Facts:
    """What the session keeps of a loaded file.

    rank         of the file itself, None if it does not say
    ranks        ranks of a merged file, empty for the usual one
    views        slugs of the views that were asked; facts of other ones are out of date
    unavailable  view slug -> why this trace has nothing to show there
    health       all notes of the trace, those of the analyses included
    """

    events: int
    rank: int | None
    ranks: tuple[int, ...]
    views: tuple[str, ...]
    unavailable: dict[str, str]
    health: tuple[Note, ...]

    def severities(self) -> Counter[str]:
        return Counter(note.severity for note in self.health)


@dataclass(frozen=True)
class Loaded:
    """Result of a job.

    results  what is made of every trace at once (`result_name`): the overview, what the views of runs reduce
             it to; empty if they are in the cache
    trace    only where the job ran in the asking process, or nothing is in the cache
    """

    facts: Facts
    results: dict[str, bytes]
    cached: bool
    trace: Trace | None


def encode(value: object) -> bytes:
    """JSON of a payload; NaN and infinity become null."""
    return msgspec.json.encode(value)


def load_in_worker(
    location: str, path: str, size: int, key: str, limit: int, cache_dir: str, cache_bytes: int
) -> Loaded:
    """`load_file` in a worker process: what is in the cache stays there, the facts travel back."""
    cache = Cache(cache_dir, cache_bytes)
    with without_gc():
        loaded = load_file(location, path, size, key, limit, cache, report_progress)
    return replace(loaded, trace=None) if loaded.cached else loaded


def load_file(
    location: str,
    path: str,
    size: int,
    key: str,
    limit: int,
    cache: Cache,
    report: Callable[[ProgressTuple], None],
) -> Loaded:
    """Read a file, compute what is made of every trace, keep it all in the cache.

    Raises TraceError if nothing can be made of it (TooLargeError if it holds more than `limit` bytes of JSON
    or takes more memory than there is), StorageError if it cannot be read.
    """
    place = open_location(location)
    try:
        return _load(place, path, size, key, limit, cache, report)
    except MemoryError:
        message = "reading this file takes more memory than there is"
    except TooLargeError as error:
        message = error.message
    command = f"torch-tb-profiler slice {quote(place.uri(path))} --from 0s --to 1s -o part.json.gz"
    raise TooLargeError(message, hint=f"cut a part out: {command}; or raise TORCH_PROFILER_TRACE_BYTES")


def _load(
    place: Location,
    path: str,
    size: int,
    key: str,
    limit: int,
    cache: Cache,
    report: Callable[[ProgressTuple], None],
) -> Loaded:
    def pass_on(progress: Progress) -> None:
        report((progress.stage, progress.bytes_done, progress.bytes_total, progress.events))

    with place.open(path) as stream:
        trace = read_trace(stream, size=size, report=pass_on, limit=limit)
    if cache_key(place.uri(path), place.entry(path).identity) != key:
        raise StorageError(
            "the file changed while it was read",
            where=place.uri(path),
            hint="it is read again, as it is now, with the next listing",
        )
    report(("analysing", size, size, len(trace)))
    with ThreadPoolExecutor(1, thread_name_prefix="profiler-save") as saver:
        saved = saver.submit(cache.save_trace, key, trace)  # writing leaves the other core to the analyses
        facts, results = examine(trace)
        report(("saving", size, size, len(trace)))
        cached = saved.result()
    cached = cached and all(cache.save_json(key, name, result) for name, result in results.items())
    cached = cached and cache.save_json(key, FACTS, encode(facts))
    return Loaded(facts, {} if cached else results, cached, trace)


def examine(trace: Trace) -> tuple[Facts, dict[str, bytes]]:
    """Facts, and what is made of every trace at once, by `result_name`."""
    split = split_ranks(trace)
    parts: dict[int | None, Trace] = dict(split.items()) if split else {None: trace}
    unavailable: dict[str, str] = {}
    results: dict[str, bytes] = {}
    health: dict[str, Note] = {note.kind: note for note in trace.health}
    for which, part in parts.items():
        for tab in all_tabs():
            view, reason = tab.view, tab.unavailable(part)
            if reason is not None:
                unavailable[tab.slug] = reason
            elif isinstance(view, TraceView) and view.eager:
                payload = view.build(part, view.params())
                results[result_name(view.slug, which)] = encode(payload)
                health.update((note.kind, note) for note in payload.health)
            elif isinstance(view, RunView):
                results[result_name(view.reduction.slug, which)] = encode(view.reduction.reduce(part))
    facts = Facts(len(trace), rank(trace), tuple(split), _slugs(), unavailable, tuple(health.values()))
    return facts, results


def result_name(slug: str, which: int | None) -> str:
    """Name in the cache of what a view made of a file, or of one rank of a merged file."""
    return slug if which is None else f"{slug}.rank{which}"


def facts_from_cache(cache: Cache, key: str) -> Facts | None:
    """The facts kept with a cached trace, None if there are none that can be read."""
    kept = cache.load_json(key, FACTS)
    if kept is None:
        return None
    try:
        facts = msgspec.json.decode(kept, type=Facts)
    except msgspec.DecodeError:
        return None
    return facts if facts.views == _slugs() else None


def gather_facts(cache: Cache, key: str, facts: Facts | None = None) -> Facts | None:
    """As `facts_from_cache` of a shared cache; brings what is kept beside the facts here as well, so that a view
    of all ranks of a job need not wait for each of them. `facts`: if they are known already."""
    facts = facts or facts_from_cache(cache, key)
    if facts is not None:
        for which in facts.ranks or (None,):
            for tab in all_tabs():
                view = tab.view
                kept = isinstance(view, RunView) or (isinstance(view, TraceView) and view.eager)
                if kept and tab.slug not in facts.unavailable:
                    cache.fetch_json(key, result_name(tab.slug, which))
    return facts


def _slugs() -> tuple[str, ...]:
    return tuple(tab.slug for tab in all_tabs())
