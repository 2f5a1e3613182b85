"""Listed files arranged as runs, workers and spans, by their names and folders."""

from __future__ import annotations

import posixpath
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from torch_tb_profiler.base.format import natural_sort_key
from torch_tb_profiler.discovery.ascend import AscendFolders
from torch_tb_profiler.discovery.beside import files_beside
from torch_tb_profiler.discovery.catalog import ListedFile, MemoryFile, OtherFiles, Run, Span, Worker
from torch_tb_profiler.discovery.copies import copies_of, other_formats
from torch_tb_profiler.discovery.names import (
    RANK_FOLDER,
    SPAN_FOLDER,
    FileName,
    parse_file_name,
    rank_in,
    stamp_label,
    stamp_order,
)
from torch_tb_profiler.ingest.formats import FileKind, ForeignFormat, file_format_by_name, trace_suffix

FOREIGN_FOLDER = "/plugins/profile/"
"""XProf's files of JAX and TensorFlow lie in it, named like traces of PyTorch."""


@dataclass(frozen=True)
class _TraceFile:
    """A trace and what its names say."""

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
    stands_alone: Callable[[ListedFile], bool],
) -> list[Run]:
    """The runs of the files of one location.

    root_name  the run of files that lie in the location itself
    prefix     put before every run's name (the name of a log folder among several)
    single     the listing is one file that the user named: it is taken whatever it is called
    is_trace   asked for files whose name does not say
    stands_alone  whether a file is a run of its own, named like it
    """
    workers: dict[str, dict[str, list[_TraceFile]]] = defaultdict(lambda: defaultdict(list))
    memory: dict[str, list[MemoryFile]] = defaultdict(list)
    traces: list[_TraceFile] = []
    files = list(files)
    repeated = set() if single else copies_of(files)
    beside = {} if single else files_beside(file for file in files if file.path not in repeated)
    owners = Counter(file.path for files_of in beside.values() for file in files_of)
    copies = repeated | owners.keys()
    ascend = AscendFolders(file.path for file in files)
    for file in files:
        if file.path in copies:
            continue
        memory_format = None if single else file_format_by_name(file.name)
        if memory_format is not None and not (trace_suffix(file.name) and is_trace(file)):
            memory[prefix + _folder(file, root_name)].append(_memory_file(file, memory_format.kind))
            continue
        name = parse_file_name(file.name)
        if single and name is None:
            name = FileName(file.name, None, None, True)
        certain = name is not None and name.certain and FOREIGN_FOLDER not in f"/{file.path}"
        if name is None or not (single or certain or is_trace(file)):
            continue
        trace = _trace_file(file, name, root_name)
        if stands_alone(file):
            trace = replace(trace, run=file.path)
        if (place := ascend.place(file.path)) is not None:
            trace = _TraceFile(place.run or root_name, place.worker, place.rank, place.stamp, file)
        trace = replace(trace, file=trace.file.ranked(trace.rank))
        if file.path in beside:
            shared = any(owners[each.path] > 1 for each in beside[file.path])
            trace = replace(trace, file=trace.file.joined(beside[file.path], shared))
        traces.append(trace)
    formats = other_formats(trace.file.path for trace in traces)
    for trace in traces:
        if trace.file.path not in formats:
            workers[prefix + trace.run][trace.worker].append(trace)
    return [
        Run(name, _workers(workers[name]), tuple(sorted(memory[name], key=lambda file: file.file.path)))
        for name in sorted(workers)
    ]


def other_files(
    files: Iterable[ListedFile], runs: Iterable[Run], foreign: Callable[[ListedFile], ForeignFormat | None]
) -> list[OtherFiles]:
    """The files that no run took and that another tool wrote, by kind."""
    taken = {each.id.uri for run in runs for file in run.files() for each in (file, *file.counters)}
    kinds: dict[ForeignFormat, list[ListedFile]] = defaultdict(list)
    for file in files:
        format_ = None if file.id.uri in taken else foreign(file)
        if format_ is not None:
            kinds[format_].append(file)
    kinds_of = [OtherFiles(kind.kind, kind.advice, tuple(listed)) for kind, listed in kinds.items()]
    return sorted(kinds_of, key=lambda others: others.kind)


def _memory_file(file: ListedFile, kind: FileKind) -> MemoryFile:
    folder = posixpath.basename(posixpath.dirname(file.path))
    shown = f"{folder}/{file.name}" if RANK_FOLDER.match(folder) or SPAN_FOLDER.match(folder) else file.name
    return MemoryFile(shown, kind, file)


def _folder(file: ListedFile, root_name: str) -> str:
    """The run of a file: its folder, those of ranks and iterations aside."""
    folders = file.path.split("/")[:-1]
    while folders and (RANK_FOLDER.match(folders[-1]) or SPAN_FOLDER.match(folders[-1])):
        folders.pop()
    return "/".join(folders) or root_name


def _trace_file(file: ListedFile, name: FileName, root_name: str) -> _TraceFile:
    folders = file.path.split("/")[:-1]
    worker, rank, stamp = name.worker, name.rank, name.stamp
    while folders:
        if RANK_FOLDER.match(folders[-1]):
            # One folder per rank: the folder is the worker.
            worker, rank = folders.pop(), rank_in(file.path) if rank is None else rank
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
