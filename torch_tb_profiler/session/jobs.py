"""The work on one file, as a function of strings so that any executor can run it anywhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from torch_tb_profiler.cache import Cache, cache_key
from torch_tb_profiler.errors import StorageError
from torch_tb_profiler.executors import ProgressTuple, report_progress
from torch_tb_profiler.ingest import Progress, read_trace
from torch_tb_profiler.model.health import Note
from torch_tb_profiler.model.ranks import rank, split_ranks
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.storage import open_location
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views import all_views

FACTS = "facts"
EAGER = "overview"


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
    """Result of a job. `trace` is there only where the job ran in the asking process."""

    facts: Facts
    overviews: dict[int | None, bytes]
    cached: bool
    trace: Trace | None


def encode(value: object) -> bytes:
    """JSON of a payload; NaN and infinity become null."""
    return msgspec.json.encode(value)


def load_in_worker(location: str, path: str, size: int, key: str, cache_dir: str, cache_bytes: int) -> Loaded:
    """`load_file` in a worker process: the trace stays in the cache, facts and overview travel back."""
    cache = Cache(cache_dir, cache_bytes)
    loaded = load_file(location, path, size, key, cache, report_progress)
    return Loaded(loaded.facts, loaded.overviews, loaded.cached, loaded.trace if not loaded.cached else None)


def load_file(
    location: str, path: str, size: int, key: str, cache: Cache, report: Callable[[ProgressTuple], None]
) -> Loaded:
    """Read a file, compute its overview, keep both in the cache.

    Raises TraceError if nothing can be made of it, StorageError if it cannot be read.
    """

    def pass_on(progress: Progress) -> None:
        report((progress.stage, progress.bytes_done, progress.bytes_total, progress.events))

    place = open_location(location)
    with place.open(path) as stream:
        trace = read_trace(stream, size=size, report=pass_on)
    if cache_key(place.uri(path), place.entry(path).identity) != key:
        raise StorageError(
            "the file changed while it was read",
            where=place.uri(path),
            hint="it is read again, as it is now, with the next listing",
        )
    report(("analysing", size, size, len(trace)))
    facts, overviews = examine(trace)
    report(("saving", size, size, len(trace)))
    cached = cache.save_trace(key, trace)
    if cached:
        for which, payload in overviews.items():
            cache.save_json(key, eager_name(which), payload)
        cache.save_json(key, FACTS, encode(facts))
    return Loaded(facts, overviews, cached, trace)


def examine(trace: Trace) -> tuple[Facts, dict[int | None, bytes]]:
    """Facts and the overview payloads (by rank; None for a file of one process)."""
    split = split_ranks(trace)
    parts: dict[int | None, Trace] = dict(split.items()) if split else {None: trace}
    unavailable: dict[str, str] = {}
    overviews: dict[int | None, bytes] = {}
    health: dict[str, Note] = {note.kind: note for note in trace.health}
    for which, part in parts.items():
        for view in all_views():
            reason = view.unavailable(part)
            if reason is not None:
                unavailable[view.slug] = reason
            elif view.slug == EAGER:
                payload = view.build(part, NoParams())
                overviews[which] = encode(payload)
                health.update((note.kind, note) for note in payload.health)
    facts = Facts(len(trace), rank(trace), tuple(split), _slugs(), unavailable, tuple(health.values()))
    return facts, overviews


def eager_name(which: int | None) -> str:
    """Name of an overview payload in the cache."""
    return EAGER if which is None else f"{EAGER}.rank{which}"


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


def _slugs() -> tuple[str, ...]:
    return tuple(view.slug for view in all_views())
