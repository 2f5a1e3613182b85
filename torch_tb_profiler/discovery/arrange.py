"""Arrange listed files as runs, workers, and spans, by their names and folders."""

from __future__ import annotations

import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence, Set

import msgspec
from msgspec.structs import replace

from torch_tb_profiler.base.format import natural_sort_key
from torch_tb_profiler.discovery.catalog import ListedFile, ListedRun, MemoryFile, OtherFiles, Span, Worker
from torch_tb_profiler.discovery.companions import pytorch_companions
from torch_tb_profiler.discovery.copies import find_copies, find_other_formats
from torch_tb_profiler.discovery.names import (
    RANK_FOLDER,
    SPAN_FOLDER,
    AscendFolders,
    FileName,
    parse_file_name,
    rank_in_name,
    stamp_label,
    stamp_order,
)
from torch_tb_profiler.discovery.origin_files import capture_owner, origin_kind, run_folder
from torch_tb_profiler.discovery.snapshots import is_step_folder, snapshot_place
from torch_tb_profiler.ingest.formats import FileKind, ForeignFormat, file_format_by_name, trace_suffix

_XPROF_FOLDER = "/plugins/profile/"
"""Folder of XProf's files of JAX and TensorFlow, which are named like traces of PyTorch."""


class _TraceFile(msgspec.Struct, frozen=True):
    """A trace with what its file and folder names say."""

    run: str
    worker: str
    rank: int | None
    stamp: str | None
    file: ListedFile


def arrange_runs(
    files: Iterable[ListedFile],
    *,
    root_name: str,
    prefix: str = "",
    single: bool = False,
    is_trace: Callable[[ListedFile], bool],
    is_separate_run: Callable[[ListedFile], bool],
) -> list[ListedRun]:
    """Return the runs of the files of one location, sorted by name.

    root_name   name of the run of files that lie in the location itself
    prefix      text before every run's name: the name of a log folder among several
    single      the listing is one file that the user named; it is a trace whatever its name is
    is_trace    whether a file is a trace; called only if its name leaves that open
    is_separate_run  whether a file is a run by itself, named like the file
    """
    workers: dict[str, dict[str, list[_TraceFile]]] = defaultdict(lambda: defaultdict(list))
    memory: dict[str, list[MemoryFile]] = defaultdict(list)
    traces: list[_TraceFile] = []
    files = list(files)
    copies = set() if single else find_copies(files)
    companions = {} if single else pytorch_companions(file for file in files if file.path not in copies)
    owner_counts = Counter(file.path for files_of in companions.values() for file in files_of)
    hidden = copies | owner_counts.keys()
    ascend = AscendFolders(file.path for file in files)
    for file in files:
        if file.path in hidden or origin_kind(file.path) not in (None, "capture"):
            continue
        memory_format = file_format_by_name(file.name)
        if single and memory_format is not None and memory_format.kind != "snapshot":
            memory_format = None
        if memory_format is not None and not (trace_suffix(file.name) and is_trace(file)):
            memory[prefix + _memory_run(file, memory_format.kind, root_name)].append(
                _memory_file(file, memory_format.kind)
            )
            continue
        name = parse_file_name(file.name)
        if single and name is None:
            name = FileName(file.name, None, None, True)
        certain = name is not None and name.certain and _XPROF_FOLDER not in f"/{file.path}"
        if name is None or not (single or certain or is_trace(file)):
            continue
        trace = _trace_file(file, name, root_name)
        if is_separate_run(file):
            trace = replace(trace, run=file.path)
        if (place := ascend.place(file.path)) is not None:
            trace = _TraceFile(place.run or root_name, place.worker, place.rank, place.stamp, file)
        if trace.rank is not None:
            trace = replace(trace, file=trace.file.with_rank(trace.rank))
        if file.path in companions:
            shared = any(owner_counts[each.path] > 1 for each in companions[file.path])
            trace = replace(trace, file=trace.file.with_companions(companions[file.path], shared))
        traces.append(trace)
    traces, capture_runs = _separate_captures(traces, root_name)
    formats = find_other_formats(trace.file.path for trace in traces)
    repeated = {path for others in formats.values() for path in others}
    by_path = {trace.file.path: trace.file for trace in traces}
    for trace in traces:
        if trace.file.path in formats:
            others = [by_path[path] for path in formats[trace.file.path]]
            trace = replace(trace, file=trace.file.with_formats(others))
        if trace.file.path not in repeated:
            workers[prefix + trace.run][trace.worker].append(trace)
    for run in memory.keys() - workers.keys():
        snapshots = [each for each in memory[run] if each.kind == "snapshot" and (single or is_trace(each.file))]
        memory[run] = [_with_rank_in_name(each) for each in memory[run]]
        for trace in _snapshot_files(run, memory[run], {each.file.path for each in snapshots}):
            workers[run][trace.worker].append(trace)
    return [
        ListedRun(
            name,
            _workers(workers[name]),
            tuple(sorted(memory[name], key=lambda file: file.file.path)),
            name.removeprefix(prefix) in capture_runs,
        )
        for name in sorted(workers)
    ]


def _separate_captures(traces: Sequence[_TraceFile], root_name: str) -> tuple[list[_TraceFile], set[str]]:
    """Return the traces, where captures of a run's graphs are a run of their own, and the names of such runs.

    Captures without the run that they are of stay where they are.
    """
    owners = [capture_owner(trace.file.path) for trace in traces]
    folders = {run_folder(trace.file.path) for trace, owner in zip(traces, owners, strict=True) if owner is None}
    separated: list[_TraceFile] = []
    capture_runs: set[str] = set()
    for trace, owner in zip(traces, owners, strict=True):
        if owner is not None and owner in folders:
            inside = trace.run if trace.run != (owner or root_name) else f"{owner}/graph_capture".lstrip("/")
            trace = replace(trace, run=inside)
            capture_runs.add(inside)
        separated.append(trace)
    return separated, capture_runs


def find_other_files(
    files: Iterable[ListedFile], runs: Iterable[ListedRun], foreign: Callable[[ListedFile], ForeignFormat | None]
) -> list[OtherFiles]:
    """Return the files outside of all runs that another tool wrote, by kind."""
    used = {each.id.uri for run in runs for file in run.files() for each in (file, *file.counters)}
    kinds: dict[ForeignFormat, list[ListedFile]] = defaultdict(list)
    for file in files:
        format_ = None if file.id.uri in used else foreign(file)
        if format_ is not None:
            kinds[format_].append(file)
    others = [OtherFiles(kind.kind, kind.advice, tuple(listed)) for kind, listed in kinds.items()]
    return sorted(others, key=lambda each: each.kind)


def distinct_names(listings: Sequence[tuple[str, Sequence[ListedRun]]]) -> tuple[list[ListedRun], list[str]]:
    """Return all runs of several log folders under distinct names, and messages about the renamed ones.

    A name that several folders have is preceded by as many of its log folder's parent folders as make it distinct:
        /data/a  run1, run2         a/run1, run2
        /data/b  run1               b/run1

    listings  (label of a log folder, its runs)
    """
    name_counts = Counter(run.name for _, runs in listings for run in runs)
    shared = sorted(name for name, count in name_counts.items() if count > 1)
    # The number of the log folder comes first: all parts together are always distinct.
    paths = [
        [str(number), *re.split(r"[/\\]+", label.rstrip("/\\"))] for number, (label, _) in enumerate(listings, 1)
    ]
    for depth in range(1, max(map(len, paths), default=0) + 1):
        renamed = [
            replace(run, name="/".join((*path[-depth:], run.name))) if name_counts[run.name] > 1 else run
            for path, (_, runs) in zip(paths, listings, strict=True)
            for run in runs
        ]
        if len({run.name for run in renamed}) == len(renamed):
            return renamed, [_rename_message(name) for name in shared]
    return [], []


def _rename_message(name: str) -> str:
    return (
        f"several log folders have a run {name!r}, so its name starts with the folder; "
        "to choose the names yourself, name the folders (--logdir_spec=first:/path,second:/path)"
    )


def _memory_file(file: ListedFile, kind: FileKind) -> MemoryFile:
    folder = posixpath.basename(posixpath.dirname(file.path))
    named = RANK_FOLDER.match(folder) or SPAN_FOLDER.match(folder) or is_step_folder(folder)
    label = f"{folder}/{file.name}" if named else file.name
    return MemoryFile(label, kind, file)


def _memory_run(file: ListedFile, kind: FileKind, root_name: str) -> str:
    """Return the run that a memory file belongs to."""
    run = snapshot_place(file.path).run if kind == "snapshot" else run_folder(file.path)
    return run or root_name


def _with_rank_in_name(file: MemoryFile) -> MemoryFile:
    """Return a snapshot with the rank that its name gives; other files as they are."""
    if file.kind != "snapshot":
        return file
    return replace(file, file=file.file.with_rank(snapshot_place(file.file.path).rank))


def _snapshot_files(run: str, files: Iterable[MemoryFile], paths: Set[str]) -> Iterator[_TraceFile]:
    """Yield the snapshots with these paths, which are the recordings of a run that has no traces."""
    for each in files:
        if each.file.path in paths:
            place = snapshot_place(each.file.path)
            yield _TraceFile(run, place.worker, place.rank, place.stamp, each.file)


def _trace_file(file: ListedFile, name: FileName, root_name: str) -> _TraceFile:
    folders = file.path.split("/")[:-1]
    worker, rank, stamp = name.worker, name.rank, name.stamp
    while folders:
        if RANK_FOLDER.match(folders[-1]):
            # With one folder per rank the folder is the worker.
            worker, rank = folders.pop(), rank_in_name(file.path) if rank is None else rank
        elif match := SPAN_FOLDER.match(folders[-1]):
            folders.pop()
            stamp = match.group(1) if stamp is None else f"{match.group(1)}.{stamp}"
        else:
            break
    return _TraceFile("/".join(folders) or root_name, worker, rank, stamp, file)


def _workers(traces_of: dict[str, list[_TraceFile]]) -> tuple[Worker, ...]:
    workers = []
    for name, traces in traces_of.items():
        traces.sort(key=lambda trace: (stamp_order(trace.stamp), trace.file.path))
        spans = tuple(
            Span(str(number), stamp_label(trace.stamp) or trace.file.name, trace.file)
            for number, trace in enumerate(traces, 1)
        )
        ranks = {trace.rank for trace in traces}
        workers.append(Worker(name, ranks.pop() if len(ranks) == 1 else None, spans))
    return tuple(sorted(workers, key=lambda worker: natural_sort_key(worker.name)))
