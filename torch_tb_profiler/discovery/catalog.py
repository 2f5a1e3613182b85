"""Listed files arranged as runs, workers and spans."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.discovery.names import (
    RANK_FOLDER,
    SPAN_FOLDER,
    FileName,
    MemoryKind,
    memory_kind,
    parse_file_name,
    rank_in,
    stamp_label,
    stamp_order,
)
from torch_tb_profiler.storage import Entry


@dataclass(frozen=True)
class TraceFile:
    """A file of traces: `path` relative to its location, `key` tells it and its content apart."""

    path: str
    size: int
    key: str
    mtime: float | None


@dataclass(frozen=True)
class Span:
    """One profiling cycle of a worker; `name` counts from "1", `label` says when (or which step)."""

    name: str
    label: str
    file: TraceFile


@dataclass(frozen=True)
class Worker:
    """One process of a run; `rank` as far as names tell."""

    name: str
    rank: int | None
    spans: tuple[Span, ...]


@dataclass(frozen=True)
class MemoryFile:
    """A memory snapshot or timeline beside the traces; `kind` as its name says."""

    name: str
    kind: MemoryKind
    file: TraceFile


@dataclass(frozen=True)
class Run:
    """A folder of traces, and the memory files in it."""

    name: str
    workers: tuple[Worker, ...]
    memory_files: tuple[MemoryFile, ...] = ()

    def files(self) -> list[TraceFile]:
        return [span.file for worker in self.workers for span in worker.spans]


@dataclass(frozen=True)
class Catalog:
    """All runs, sorted by name; `problems` are places that could not be listed."""

    runs: tuple[Run, ...] = ()
    problems: tuple[str, ...] = ()
    _by_name: dict[str, Run] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        self._by_name.update((run.name, run) for run in self.runs)

    def run(self, name: str | None) -> Run:
        """A run by name, the first if None; NotFoundError says what there is."""
        if name is None and self.runs:
            return self.runs[0]
        if name is not None and name in self._by_name:
            return self._by_name[name]
        if not self.runs:
            raise NotFoundError("there are no runs", hint="no trace file was found in the log folder")
        raise NotFoundError(f"there is no run {name!r}", hint=_options("runs", (run.name for run in self.runs)))


def find_worker(workers: tuple[Worker, ...], name: str | None) -> Worker:
    """A worker by name, the first if None; NotFoundError says what there is."""
    for worker in workers:
        if name is None or worker.name == name:
            return worker
    raise NotFoundError(f"there is no worker {name!r}", hint=_options("workers", (w.name for w in workers)))


def find_span(worker: Worker, name: str | None) -> Span:
    """A span by name, the first if None; NotFoundError says what there is."""
    for span in worker.spans:
        if name is None or span.name == name:
            return span
    raise NotFoundError(f"there is no span {name!r}", hint=_options("spans", (s.name for s in worker.spans)))


def _options(what: str, names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - 10} more" if len(listed) > 10 else ""
    return f"{what}: {', '.join(listed[:10])}{more}"


@dataclass(frozen=True)
class _Placed:
    run: str
    worker: str
    rank: int | None
    stamp: str | None
    entry: Entry


def build_catalog(
    entries: Iterable[Entry],
    *,
    root_name: str,
    prefix: str = "",
    single: bool = False,
    is_trace: Callable[[Entry], bool],
    key_of: Callable[[Entry], str],
) -> list[Run]:
    """Arrange listed files.

    root_name  the run of files that lie in the location itself
    prefix     put before every run's name (the name of a log folder among several)
    single     the listing is one file that the user named: it is taken whatever it is called
    is_trace   asked for JSON files whose name does not say
    """
    groups: dict[str, dict[str, list[_Placed]]] = defaultdict(lambda: defaultdict(list))
    memory: dict[str, list[MemoryFile]] = defaultdict(list)
    for entry in entries:
        kind = None if single else memory_kind(entry.path)
        if kind is not None and not (entry.path.endswith((".json", ".gz")) and is_trace(entry)):
            memory[prefix + _folder(entry, root_name)].append(_memory_file(entry, kind, key_of))
            continue
        name = parse_file_name(posixpath.basename(entry.path))
        if single and name is None:
            name = FileName(posixpath.basename(entry.path), None, None, True)
        if name is None or not (single or name.certain or is_trace(entry)):
            continue
        placed = _place(entry, name, root_name)
        groups[prefix + placed.run][placed.worker].append(placed)
    return [
        Run(name, _workers(groups[name], key_of), tuple(sorted(memory[name], key=lambda file: file.file.path)))
        for name in sorted(groups)
    ]


def _memory_file(entry: Entry, kind: MemoryKind, key_of: Callable[[Entry], str]) -> MemoryFile:
    folders, _, name = entry.path.rpartition("/")
    rank = folders.rpartition("/")[2]
    shown = f"{rank}/{name}" if RANK_FOLDER.match(rank) or SPAN_FOLDER.match(rank) else name
    return MemoryFile(shown, kind, TraceFile(entry.path, entry.size, key_of(entry), entry.mtime))


def _folder(entry: Entry, root_name: str) -> str:
    """The run of a file: its folder, those of ranks and iterations aside."""
    folders = entry.path.split("/")[:-1]
    while folders and (RANK_FOLDER.match(folders[-1]) or SPAN_FOLDER.match(folders[-1])):
        folders.pop()
    return "/".join(folders) or root_name


def _place(entry: Entry, name: FileName, root_name: str) -> _Placed:
    folders = entry.path.split("/")[:-1]
    worker, rank, stamp = name.worker, name.rank, name.stamp
    while folders:
        if RANK_FOLDER.match(folders[-1]):
            # One folder per rank: the folder is the worker.
            worker, rank = folders.pop(), rank_in(entry.path) if rank is None else rank
        elif match := SPAN_FOLDER.match(folders[-1]):
            folders.pop()
            stamp = match.group(1) if stamp is None else f"{match.group(1)}.{stamp}"
        else:
            break
    return _Placed("/".join(folders) or root_name, worker, rank, stamp, entry)


def _workers(groups: dict[str, list[_Placed]], key_of: Callable[[Entry], str]) -> tuple[Worker, ...]:
    workers = []
    for name, placed in groups.items():
        placed.sort(key=lambda item: (stamp_order(item.stamp), item.entry.path))
        spans = tuple(
            Span(
                str(number),
                stamp_label(item.stamp) or posixpath.basename(item.entry.path),
                TraceFile(item.entry.path, item.entry.size, key_of(item.entry), item.entry.mtime),
            )
            for number, item in enumerate(placed, 1)
        )
        ranks = {item.rank for item in placed}
        workers.append(Worker(name, ranks.pop() if len(ranks) == 1 else None, spans))
    return tuple(sorted(workers, key=lambda worker: natural_order(worker.name)))


def natural_order(name: str) -> tuple[tuple[int, int, str], ...]:
    """Sort key that puts rank10 after rank9."""
    parts: list[tuple[int, int, str]] = []
    digits = ""
    for character in name + "\0":
        if character.isdecimal() and character.isascii() and len(digits) < 30:
            digits += character
            continue
        if digits:
            parts.append((0, int(digits), ""))
            digits = ""
        parts.append((1, 0, character))
    return tuple(parts)
