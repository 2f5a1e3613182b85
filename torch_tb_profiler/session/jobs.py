"""The work on one file, as a function of plain values so that any executor can run it anywhere."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from shlex import quote
from typing import BinaryIO, NamedTuple, cast

from torch_tb_profiler.base.errors import StorageError, TooLargeError
from torch_tb_profiler.cache import Cache
from torch_tb_profiler.discovery.catalog import joined_identity, ranked_identity
from torch_tb_profiler.executors import ProgressTuple, limited_memory, release_memory, report_progress
from torch_tb_profiler.executors.job import NATIVE_READER
from torch_tb_profiler.ingest import Progress, read_trace, without_gc
from torch_tb_profiler.ingest.helpers import lent
from torch_tb_profiler.model.calls.compiled import use_compiled_functions
from torch_tb_profiler.model.catalog import EMPTY_CATALOG, Catalog
from torch_tb_profiler.model.health import HealthNote
from torch_tb_profiler.model.ranks import split_trace, trace_rank, with_fallback_rank
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.session.kept.likeness import sketch
from torch_tb_profiler.session.kept.packed import pack
from torch_tb_profiler.session.kept.structure import entry_key
from torch_tb_profiler.session.kept.summary import SUMMARY, FileSummary, encode, result_name
from torch_tb_profiler.storage import FileId, Location, open_location
from torch_tb_profiler.view import RunView
from torch_tb_profiler.views import all_tabs


class LoadRequest(NamedTuple):
    """Which file is to be read.

    location  URL of the place, `path` relative to it
    size      stored bytes
    id        as it was listed
    limit     bytes of JSON that may be read, 0 for any number
    catalog   the user's devices
    beside    (rank, path) of the files that tell more of the same recording (`ListedFile.beside`)
    shared    other files may have more of these than this one
    counters  (path, stored bytes) of the files with hardware counters of its kernels
    rank      as what lies around the file tells
    tables    (path, stored bytes) of the files that are read as one with it
    """

    location: str
    path: str
    size: int
    id: FileId
    limit: int
    catalog: Catalog = EMPTY_CATALOG
    beside: tuple[tuple[int, str], ...] = ()
    counters: tuple[tuple[str, int], ...] = ()
    shared: bool = False
    rank: int | None = None
    tables: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Loaded:
    """Result of a job.

    results  what views answer of every trace at once (`result_name`): the first page of the overview
    reduced  what the views of runs reduce it to (`kept.packed`); both are empty if they are in the cache
    trace    only where the job ran in the asking process, or nothing is in the cache
    """

    summary: FileSummary
    results: dict[str, bytes]
    reduced: dict[str, bytes]
    cached: bool
    trace: Trace | None


_READERS = 3
"""Threads that read a file ahead, where its format can make use of them."""

_open: dict[str, Trace] = {}
"""In a worker: the trace of the job before, with what was derived from it, by its key."""


def load_in_worker(request: LoadRequest, cache_dir: str, cache_bytes: int, stays: bool = False) -> Loaded:
    """`load_file` in a worker process: what is in the cache stays there, the summary travels back.

    stays  the trace is left here until the next job, for what the other tabs answer first
    """
    _open.clear()
    use_compiled()
    cache = Cache(cache_dir, cache_bytes)
    with without_gc():
        loaded = load_file(request, cache, report_progress)
    if not loaded.cached:
        return loaded
    if stays and loaded.trace is not None:
        _open[entry_key(request.id, request.catalog)] = loaded.trace
    return replace(loaded, trace=None)


def derived_from(cache: Cache, key: str, catalog: Catalog) -> Trace | None:
    """In a worker: a trace that is in the cache, with what this process derived from it; None if it is lost."""
    trace = _open.get(key)
    if trace is None and (kept := cache.load_trace(key)) is not None:
        trace = replace(kept, catalog=catalog)
        _open.clear()
        _open[key] = trace
    return trace


def use_compiled() -> None:
    """What this process derives from traces is derived in C where it may be, and where that was compiled."""
    from torch_tb_profiler.ingest.kineto.native.nesting import compiled_functions

    use_compiled_functions(compiled_functions())


def load_alone(request: LoadRequest, cache: Cache, report: Callable[[ProgressTuple], None], memory: int) -> Loaded:
    """`load_file` in a process that has nothing else to do, with at most `memory` bytes, as a worker has.

    Native code reads here, too: should it crash, it says what to do, and nothing else is lost.
    """
    os.environ.setdefault(*NATIVE_READER)
    use_compiled()
    with limited_memory(memory), without_gc():
        return load_file(request, cache, report)


def load_file(request: LoadRequest, cache: Cache, report: Callable[[ProgressTuple], None]) -> Loaded:
    """Read a file, compute what is made of every trace, keep it all in the cache.

    Raises TraceError if nothing can be made of it (TooLargeError if it holds more than the limit or takes more
    memory than there is), StorageError if it cannot be read.
    """
    location = open_location(request.location)
    try:
        return _load(location, request, cache, report)
    except MemoryError:
        message = "reading this file takes more memory than there is"
    except TooLargeError as error:
        message = error.message
    uri = location.uri(request.path)
    command = f"torch-tb-profiler slice {quote(uri)} --from 0s --to 1s -o part.json.gz"
    raise TooLargeError(message, hint=f"cut a part out: {command}; or raise TORCH_PROFILER_TRACE_BYTES")


def _load(
    location: Location, request: LoadRequest, cache: Cache, report: Callable[[ProgressTuple], None]
) -> Loaded:
    path, size = request.path, request.size + sum(stored for _, stored in request.tables)

    def pass_on(progress: Progress) -> None:
        report((progress.stage, progress.bytes_done, progress.bytes_total, progress.events))

    with ThreadPoolExecutor(_READERS, thread_name_prefix="profiler-read") as threads:
        threads.submit(all_tabs)  # imports what examines the trace, while compiled code reads
        with _opened(location, request) as stream, lent(threads if _cores() > 1 else None):
            trace = read_trace(stream, size=size, report=pass_on, limit=request.limit)
    identity = location.entry(path).identity
    for other, _ in request.tables:
        identity = joined_identity(identity, location.entry(other).identity)
    for counters, _ in request.counters:
        identity = joined_identity(identity, location.entry(counters).identity)
    identity = ranked_identity(identity, request.rank)
    if request.rank is not None:
        trace = with_fallback_rank(trace, request.rank)
    if request.beside:
        from torch_tb_profiler.ingest.composer.beside import add_pytorch

        beside = [(number, partial(location.open, other)) for number, other in request.beside]
        own = partial(location.open, path)
        trace = add_pytorch(trace, own, beside, report=pass_on, limit=request.limit, shared=request.shared)
    for _, other in request.beside:
        identity = joined_identity(identity, location.entry(other).identity)
    if request.counters:
        from torch_tb_profiler.session.counters import with_files

        trace = with_files(trace, location, request.counters, request.limit)
    release_memory()  # the pieces that columns were joined of; analyses would come on top of them
    trace = replace(trace, catalog=request.catalog)
    if FileId(location.uri(path), identity) != request.id:
        raise StorageError(
            "the file changed while it was read",
            where=location.uri(path),
            hint="it is read again, as it is now, with the next listing",
        )
    key = entry_key(request.id, request.catalog)
    report(("analyzing", size, size, len(trace)))
    with ThreadPoolExecutor(1, thread_name_prefix="profiler-save") as saver:
        saved = saver.submit(cache.save_trace, key, trace)  # writing leaves the other core to the analyses
        summary, results, reduced = examine(trace)
        report(("saving", size, size, len(trace)))
        cached = saved.result()
    cached = cached and all(cache.save_json(key, name, result) for name, result in results.items())
    cached = cached and all(cache.save_reduced(key, name, content) for name, content in reduced.items())
    cached = cached and cache.save_json(key, SUMMARY, encode(summary))
    return Loaded(summary, {} if cached else results, {} if cached else reduced, cached, trace)


def _opened(location: Location, request: LoadRequest) -> BinaryIO:
    if not request.tables:
        return location.open(request.path)
    from torch_tb_profiler.ingest.joined import Joined

    paths = [request.path, *(path for path, _ in request.tables)]
    return cast(BinaryIO, Joined([partial(location.open, path) for path in paths]))


def _cores() -> int:
    """So many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def examine(trace: Trace) -> tuple[FileSummary, dict[str, bytes], dict[str, bytes]]:
    """The summary, and by `result_name` what is answered of every trace at once and what it is reduced to."""
    split_ = split_trace(trace)
    parts: dict[int | None, Trace] = dict(split_.items()) if split_ else {None: trace}
    unavailable: dict[str, str] = {}
    results: dict[str, bytes] = {}
    reduced: dict[str, bytes] = {}
    health: dict[str, HealthNote] = {note.kind: note for note in trace.health}
    for number, part in parts.items():
        for tab in all_tabs():
            reason = tab.reason(part)
            if reason is not None:
                unavailable[tab.slug] = reason
                continue
            for view in tab.made_when_parsed:
                payload = view.build(part, view.params())
                answer = encode(payload)
                results.update((result_name(slug, number), answer) for slug in view.answered_by(payload))
                health.update((note.kind, note) for note in payload.health)
            if isinstance(tab.view, RunView):
                for reduction in (tab.view.reduction, tab.view.reduction.details):
                    if reduction is not None:
                        reduced[result_name(reduction.kept_as, number)] = pack(reduction.reduce(part))
    summary = FileSummary(
        len(trace),
        trace_rank(trace),
        () if trace.recordings else tuple(split_),
        max(len(trace.recordings), 1),
        unavailable,
        tuple(health.values()),
        sketch(trace),
    )
    return summary, results, reduced
