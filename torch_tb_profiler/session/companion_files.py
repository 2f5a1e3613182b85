"""Add what the files beside a trace say about it.

hardware counters of its kernels; its requests and the queue of its engine; where its kernels come from; what its
recorder was asked for; the iterations of its process

Files about its kernels and its recorder are read only if the trace has what they may explain. A file that can't be
used costs a health note.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from torch_tb_profiler.base.errors import StorageError, TooLargeError, TraceError
from torch_tb_profiler.base.format import format_duration
from torch_tb_profiler.base.grammar import plural
from torch_tb_profiler.base.memo import Memo
from torch_tb_profiler.discovery.companions import is_engine_log
from torch_tb_profiler.discovery.names import rank_in_name
from torch_tb_profiler.discovery.origin_files import OriginKind, is_metrics_file, origin_kind, stacks_owner
from torch_tb_profiler.ingest import read_trace
from torch_tb_profiler.ingest.engine_log.read import read_engine_log
from torch_tb_profiler.ingest.request_spans import read_request_spans
from torch_tb_profiler.ingest.rocprof.counters import read_counters
from torch_tb_profiler.model.counters.dispatches import DispatchCounters, with_counters
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.iteration_metrics import join_by_kernels, join_iterations
from torch_tb_profiler.model.origin_records import (
    CaptureSet,
    CompiledGraph,
    CompiledKernel,
    NodeAnnotation,
    OriginRecords,
    PlacedIterations,
    join_captures,
)
from torch_tb_profiler.model.origins.captures import find_captures
from torch_tb_profiler.model.origins.compiled import has_compiled_calls
from torch_tb_profiler.model.origins.graph_nodes import NODE_KEY
from torch_tb_profiler.model.origins.packaged import may_be_packaged
from torch_tb_profiler.model.origins.replays import graph_replays, same_node_names, same_node_times
from torch_tb_profiler.model.ranks import trace_rank
from torch_tb_profiler.model.serving.requests import QueueSample, RequestRecord, with_queue, with_requests
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import ROCPROF, Trace
from torch_tb_profiler.model.vendors.gaudi import CONFIG_KEY, is_gaudi
from torch_tb_profiler.storage import Location

T = TypeVar("T")

_NAMES: dict[OriginKind, str] = {
    "capture": "captures",
    "compile log": "compile record",
    "package": "record of AOTInductor",
    "stacks": "launch stacks",
    "annotations": "annotations of graph nodes",
    "configuration": "configuration of Gaudi's profiler",
}

_MARK_STEPS = (
    '. To join them by number, mark steps with roctx (`roctxRangePush("step 4")`) and record with `--marker-trace`'
)


def add_counter_files(trace: Trace, location: Location, files: Sequence[tuple[str, int]], limit: int) -> Trace:
    """Add the hardware counters in `files` (path, stored bytes) to a trace; unusable files only leave a note.

    limit  bytes of each file that may be read, 0 for no limit

    Raises StorageError if a file can't be read.
    """
    health = HealthLog()
    tables: list[DispatchCounters] = []
    for path, size in files:
        try:
            with location.open(path) as stream:
                tables.append(read_counters(stream, size=size, report=lambda progress: None, limit=limit))
        except TraceError as error:
            health.add(
                "counters_unreadable", "warning", f"skipped a counter file next to the trace: {error.message}"
            )
    return with_counters(replace(trace, health=(*trace.health, *health.notes())), tables)


def add_request_files(trace: Trace, location: Location, files: Sequence[tuple[str, int]], limit: int) -> Trace:
    """Return the trace with the requests in the files (path, stored bytes) that overlap it, and its queue.

    limit  bytes of each file that may be read, 0 for no limit

    Spans say more than a log, so where there are both, the log only tells the queue.

    Raises StorageError if a file can't be read.
    """
    health, spans, logged, samples = HealthLog(), list[RequestRecord](), list[RequestRecord](), list[QueueSample]()
    begin = trace.wall_start_ns
    for path, size in files:
        name, is_log = posixpath.basename(path), is_engine_log(path)
        try:
            with location.open(path) as stream:
                if not is_log:
                    spans += read_request_spans(stream, size=size, health=health, limit=limit)
                elif (
                    log := read_engine_log(stream, size=size, health=health, near_ns=begin, limit=limit)
                ) is not None:
                    logged += log.requests
                    samples += log.samples
        except (TraceError, TooLargeError) as error:
            health.add("requests_unreadable", "warning", f"{name}: its requests can't be used: {error.message}")
    records, joined = spans or logged, trace
    if (records or samples) and begin is None:
        health.add(
            "requests_outside",
            "warning",
            "the requests beside the trace can't be placed: the trace doesn't say when it was recorded",
        )
    elif records or samples:
        joined = with_queue(with_requests(trace, records), samples)
        if joined is trace:
            found = f"none of the {len(records):,} requests" if records else "no line of the server's log"
            health.add(
                "requests_outside",
                "warning",
                f"{found} beside the trace {'ran' if records else 'was written'} while it was recorded",
            )
    if joined is trace and not health.notes():
        return trace
    return replace(joined, health=(*joined.health, *health.notes()))


def add_origin_files(
    trace: Trace, location: Location, path_of_trace: str, files: Sequence[tuple[str, int]], limit: int
) -> Trace:
    """Return the trace with what the files (path, stored bytes) say about its kernels and its recorder.

    path_of_trace  launch stacks beside another trace count only if that is of the same recording
    limit  bytes of each file that may be read, 0 for no limit

    Raises StorageError if a file can't be read.
    """
    wanted = _find_wanted_kinds(trace)
    metadata = trace.metadata
    captures: list[CaptureSet] = []
    graphs: list[CompiledGraph] = []
    packaged: list[CompiledKernel] = []
    stacks: dict[str, tuple[str, ...]] = {}
    annotations: dict[str, NodeAnnotation] = {}
    health = HealthLog()

    def read(path: str, kind: OriginKind, parse: Callable[[Any], T], unknown: T) -> T:
        try:
            with location.open(path) as stream:
                return parse(stream)
        except (TraceError, TooLargeError) as error:
            message = f"{posixpath.basename(path)}: the {_NAMES[kind]} can't be used: {error.message}"
            health.add("origins_unreadable", "warning", message)
            return unknown

    metrics = [(path, size) for path, size in files if is_metrics_file(path)]
    trace, iterations = _add_metrics(trace, location, metrics, health, limit)
    for path, size in files:
        kind = origin_kind(path) or "capture"
        if is_metrics_file(path):
            continue
        if kind not in wanted:
            continue
        if kind == "capture":
            parse = partial(_read_captures, path=path, size=size, limit=limit)
            captures.append(read(path, kind, parse, CaptureSet()))
        elif kind == "compile log":
            from torch_tb_profiler.ingest.compile_log import read_compile_log

            graphs += read(path, kind, read_compile_log, [])
        elif kind == "package":
            from torch_tb_profiler.ingest.compile_log import read_kernel_information

            packaged += read(path, kind, read_kernel_information, [])
        elif kind == "stacks":
            from torch_tb_profiler.ingest.node_files import read_node_stacks

            owner, no_stacks = stacks_owner(path), dict[str, tuple[str, ...]]()
            if owner == path_of_trace.removesuffix(".gz") or _is_same_recording(trace, location, owner, limit):
                stacks.update(read(path, kind, read_node_stacks, no_stacks))
        elif kind == "configuration":
            from torch_tb_profiler.ingest.gaudi_config import read_gaudi_config

            parse_config = partial(read_gaudi_config, name=posixpath.basename(path))
            if (config := read(path, kind, parse_config, None)) is not None:
                metadata = {**metadata, CONFIG_KEY: msgspec.to_builtins(config)}
        else:
            from torch_tb_profiler.ingest.node_files import read_node_annotations

            no_annotations: dict[str, NodeAnnotation] = {}
            annotations.update(read(path, kind, read_node_annotations, no_annotations))
    records = OriginRecords(
        join_captures(captures), tuple(graphs), tuple(packaged), stacks, annotations, iterations
    )
    if records == trace.origin_records and metadata is trace.metadata and not health.notes():
        return trace
    return replace(
        trace, metadata=metadata, origin_records=records, health=(*trace.health, *health.notes()), _memo=Memo()
    )


def _add_metrics(
    trace: Trace, location: Location, files: Sequence[tuple[str, int]], health: HealthLog, limit: int
) -> tuple[Trace, PlacedIterations | None]:
    """Return the trace with the iterations in its process's metrics, and these; a note says what was joined."""
    has_steps = steps(trace).recorded
    if not files or not (has_steps or trace.producer == ROCPROF):
        return trace, None
    if len(files) > 1:
        rank = trace_rank(trace)
        files = [each for each in files if rank_in_name(posixpath.basename(each[0])) == rank]
    if len(files) != 1:
        health.add(
            "metrics_unknown", "info", "the iteration metrics beside the trace are of other or unknown ranks"
        )
        return trace, None
    path, size = files[0]
    name = posixpath.basename(path)
    try:
        with location.open(path) as stream:
            metrics = read_trace(stream, size=size, report=lambda progress: None, limit=limit, name=path)
    except (TraceError, TooLargeError) as error:
        health.add("metrics_unreadable", "warning", f"{name}: its iterations can't be used: {error.message}")
        return trace, None
    joined = join_iterations(trace, metrics) if has_steps else join_by_kernels(trace, metrics)
    if joined.placed is None:
        what, advice = ("steps", "") if has_steps else ("kernels", _MARK_STEPS)
        message = f"{name}: its iterations are not joined with the {what}: {joined.reason}{advice}"
        health.add("metrics_outside", "info", message)
        return trace, None
    count = plural(len(joined.placed.number), "iteration")
    how = (
        f"{count} joined by {plural(joined.kernels, 'kernel')} of collectives, which fit their ranges "
        "in one way; each lies"
        if joined.kernels
        else f"{count} joined by step number; each lies in its step,"
    )
    far = f"at most {format_duration(joined.slack_ns, 'up')} from where it is drawn"
    health.add("metrics_joined", "info", f"{name}: {how} {far}")
    return joined.trace, msgspec.structs.replace(joined.placed, path=path)


def _is_same_recording(trace: Trace, location: Location, owner: str, limit: int) -> bool:
    """Return whether another trace has the same work of graph nodes at the same times; False if unreadable."""
    for path in (owner, f"{owner}.gz"):
        try:
            entry = location.entry(path)
            with location.open(path) as stream:
                other = read_trace(stream, size=entry.size, report=lambda progress: None, limit=limit, name=path)
        except (StorageError, TraceError, TooLargeError):
            continue
        return same_node_times(trace, other)
    return False


def _find_wanted_kinds(trace: Trace) -> set[OriginKind]:
    """Return the kinds of files that may explain kernels of a trace."""
    wanted: set[OriginKind] = set()
    if len(graph_replays(trace)):
        wanted.add("capture")
    if NODE_KEY in trace.args:
        wanted |= {"stacks", "annotations"}
    if has_compiled_calls(trace):
        wanted.add("compile log")
    if may_be_packaged(trace):
        wanted.add("package")
    if is_gaudi(trace):
        wanted.add("configuration")
    return wanted


def _read_captures(stream: Any, path: str, size: int, limit: int) -> CaptureSet:
    captured = read_trace(stream, size=size, report=lambda progress: None, limit=limit)
    return find_captures(captured, path, path)


def with_captures(trace: Trace, captured: Sequence[tuple[str, Trace]]) -> Trace:
    """Return the trace with the captures in further traces (what holds each, for people; the trace).

    Launch stacks and annotations of graph nodes there count if each node that both traces ran has the same name.
    """
    sets = [find_captures(other, source) for source, other in captured]
    records = trace.origin_records
    stacks, annotations = dict(records.stacks), dict(records.annotations)
    for _, other in captured:
        if same_node_names(trace, other):
            stacks = {**other.origin_records.stacks, **stacks}
            annotations = {**other.origin_records.annotations, **annotations}
    captures = join_captures([records.captures, *sets])
    updated = msgspec.structs.replace(records, captures=captures, stacks=stacks, annotations=annotations)
    return replace(trace, origin_records=updated, _memo=Memo())
