"""Files that belong to a trace and are read together with it.

Composer, whose copy of PyTorch's events lacks the description of devices and job:
    run/traces/ep0-ba4-rank1.json             events of the trainer and of PyTorch, of one rank
    run/traces/node0.json                     the same of all ranks of a node, merged
    run/torch_traces/rank1.4.pt.trace.json    PyTorch's own file of a rank and window

Tables of one recording of rocprofv3, which are one trace:
    host/7_kernel_trace.csv                   the trace of worker 7
    host/7_hip_api_trace.csv, host/7_memory_copy_trace.csv, host/7_agent_info.csv

Hardware counters that rocprofv3 measured for the kernels of another trace:
    run/host.1.pt.trace.json                  the trace
    run/4242_counter_collection.csv           one pass
    run/pass_1/host_counter_collection.csv    several passes

Requests of an inference engine, which belong to all traces of their run, as one server writes them for all of its
ranks:
    run/rank0.1.pt.trace.json                 the trace
    run/otlp.jsonl                            OpenTelemetry spans; also spans.json, vllm_spans.jsonl.gz
    run/sglang.log                            log of the server; also vllm.log, server.log.gz, serve_tp8.out
"""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from torch_tb_profiler.base.patterns import AnyCase, lazy_regex
from torch_tb_profiler.discovery.catalog import ListedFile, Span, Worker
from torch_tb_profiler.discovery.names import (
    TABLE_KINDS,
    TABLE_NAME_PATTERN,
    FileName,
    parse_file_name,
    rank_in_name,
)
from torch_tb_profiler.discovery.origin_files import run_folder
from torch_tb_profiler.storage import FileId

MAX_REQUEST_FILES = 64
"""Most files of spans that belong to one run; the Collector rotates its file."""

_RUN, _END = r"^(?P<run>(?:.*/)?)", r"\.json(?:\.gz)?$"
_COMPOSER_RANK = lazy_regex(rf"{_RUN}traces/ep\d+-ba(?P<batch>\d+)-rank(?P<rank>\d+){_END}")
_COMPOSER_MERGED = lazy_regex(rf"{_RUN}traces/(?:node\d+|merged_trace){_END}")
_PYTORCH = lazy_regex(rf"{_RUN}torch_traces/rank(?P<rank>\d+)\.(?P<batch>\d+)\.pt\.trace{_END}")

_TABLE = lazy_regex(rf"^(?P<stem>(?:.*/)?(?:[^/]+_)?){TABLE_NAME_PATTERN}\.csv(?:\.gz)?$", re.IGNORECASE)
_AGENTS = lazy_regex(r"^(?P<stem>(?:.*/)?(?:[^/]+_)?)agent_info\.csv(?:\.gz)?$", re.IGNORECASE)

_COUNTERS = ("counter_collection.csv", "counter_collection.csv.gz")
_PASS = lazy_regex(r"^(?:pass|pmc)_\d+$", re.IGNORECASE)

_BEFORE, _BEHIND = r"(?:^|/)(?:[^/]*[-_.])?", r"(?:[-_.][^/]*)?"
_SPANS = AnyCase(
    "", *((word, rf"{_BEFORE}{word}{_BEHIND}\.jsonl?(?:\.gz)?$") for word in ("otlp", "otel", "spans"))
)
_ENGINE_LOG = AnyCase(
    "",
    *(
        (word, rf"{_BEFORE}{word}{_BEHIND}\.(?:log|out|txt)(?:\.gz)?$")
        for word in ("vllm", "sglang", "serve", "server", "engine")
    ),
)


def pytorch_companions(files: Iterable[ListedFile]) -> dict[str, tuple[ListedFile, ...]]:
    """Return PyTorch's files that may belong to each Composer file (by path), sorted by rank and batch.

    A merged file gets the files of all ranks, or none if the files of single ranks, which it repeats, are there as
    well. Names don't say which of several merged files holds which rank: each gets all files, and reading it keeps
    those of its ranks.
    """
    rank_files: dict[tuple[str, int, int], str] = {}
    merged_files: dict[str, list[str]] = defaultdict(list)
    pytorch_files: dict[tuple[str, int, int], ListedFile] = {}
    for file in files:
        if match := _COMPOSER_RANK.match(file.path):
            rank_files[_rank_and_batch(match)] = file.path
        elif match := _COMPOSER_MERGED.match(file.path):
            merged_files[match["run"]].append(file.path)
        elif match := _PYTORCH.match(file.path):
            pytorch_files[_rank_and_batch(match)] = file
    runs_by_rank = {run for run, _, _ in rank_files}
    beside: dict[str, list[ListedFile]] = defaultdict(list)
    for key in sorted(pytorch_files):
        run = key[0]
        if key in rank_files:
            beside[rank_files[key]].append(pytorch_files[key])
        elif run not in runs_by_rank:
            for path in merged_files[run]:
                beside[path].append(pytorch_files[key])
    return {path: tuple(listed) for path, listed in beside.items()}


def is_merged(file: ListedFile) -> bool:
    """Return whether PyTorch files of several ranks may belong to a file."""
    return bool(file.beside) and _COMPOSER_MERGED.match(file.path) is not None


def unmerged_workers(merged_ranks: Mapping[ListedFile, frozenset[int]]) -> list[Worker]:
    """Return one worker for each rank whose PyTorch files lie beside merged files that don't hold the rank.

    merged_ranks  the ranks that each merged file of a run holds; empty for a file that can't be read
    """
    merged_paths = {
        other.path
        for file, ranks in merged_ranks.items()
        for other in file.beside
        if companion_rank(other.path) in ranks
    }
    remaining: dict[int, dict[str, ListedFile]] = defaultdict(dict)
    for file in merged_ranks:
        for other in file.beside:
            if other.path not in merged_paths:
                remaining[companion_rank(other.path)][other.path] = other
    return [_pytorch_worker(rank, list(remaining[rank].values())) for rank in sorted(remaining)]


def _pytorch_worker(rank: int, files: Sequence[ListedFile]) -> Worker:
    spans = [(int(match["batch"]), file) for file in files if (match := _PYTORCH.match(file.path))]
    ordered = sorted(spans, key=lambda span: (span[0], span[1].path))
    return Worker(
        f"torch_traces/rank{rank}",
        rank,
        tuple(Span(str(number), str(batch), file) for number, (batch, file) in enumerate(ordered, 1)),
    )


def companion_rank(path: str) -> int:
    """Return the rank of a PyTorch file that belongs to a Composer file."""
    match = _PYTORCH.match(path)
    assert match is not None, path
    return int(match["rank"])


def _rank_and_batch(match: re.Match[str]) -> tuple[str, int, int]:
    return match["run"], int(match["rank"]), int(match["batch"])


def with_tables(
    files: Sequence[ListedFile], is_trace: Callable[[ListedFile], bool], is_table: Callable[[ListedFile], bool]
) -> list[ListedFile]:
    """Return the files in their order, where the tables of a rocprofv3 recording are one file with `tables`.

    is_trace  whether a file that is named like a table of records is one
    is_table  whether a file that is named like a table of agents is one
    """
    records: dict[str, list[tuple[int, str, ListedFile]]] = defaultdict(list)
    agents: dict[str, list[ListedFile]] = defaultdict(list)
    for file in files:
        if ".csv" not in file.path.lower():
            continue
        if (match := _TABLE.match(file.path)) and is_trace(file):
            records[match["stem"]].append((TABLE_KINDS.index(match["kind"].lower()), file.path, file))
        elif match := _AGENTS.match(file.path):
            agents[match["stem"]].append(file)
    joined: dict[str, ListedFile | None] = {}
    for stem, candidates in records.items():
        first, *others = _without_packed_copies(candidates)
        descriptions = [each for each in agents[stem] if is_table(each)][:1]
        joined.update((path, None) for _, path, _ in candidates)
        joined.update((each.path, None) for each in agents[stem] if descriptions)
        joined[first.path] = first.with_tables([*others, *descriptions])
    return [each for file in files if (each := joined.get(file.path, file)) is not None]


def _without_packed_copies(candidates: Sequence[tuple[int, str, ListedFile]]) -> list[ListedFile]:
    """Return one file per kind: a table that also lies there compressed is read once."""
    kinds: dict[int, ListedFile] = {}
    for kind, _, file in sorted(candidates, key=lambda each: each[:2]):
        kinds.setdefault(kind, file)
    return list(kinds.values())


def with_counter_files(files: Sequence[ListedFile], is_trace: Callable[[ListedFile], bool]) -> list[ListedFile]:
    """Return the files in their order, where each trace has the files with hardware counters of its kernels.

    If a folder holds traces of several workers, counters belong to the worker whose rank is in their name.

    is_trace  whether a file is a trace; called only if its name leaves that open
    """
    folders: dict[str, list[ListedFile]] = defaultdict(list)
    for file in files:
        if _holds_counters(file):
            folders[_counted_folder(file.path)].append(file)
    if not folders:
        return list(files)
    traces: dict[str, list[tuple[ListedFile, FileName]]] = defaultdict(list)
    companions = {each.path for listed in pytorch_companions(files).values() for each in listed}
    for file in files:
        name = None if _holds_counters(file) or file.path in companions else parse_file_name(file.name)
        if posixpath.dirname(file.path) in folders and name is not None and (name.certain or is_trace(file)):
            traces[posixpath.dirname(file.path)].append((file, name))
    counters_of: dict[FileId, list[ListedFile]] = defaultdict(list)
    for folder, counters in folders.items():
        single = len({name.worker for _, name in traces[folder]}) == 1
        for counters_file in sorted(counters, key=lambda file: file.path):
            rank = rank_in_name(counters_file.name)
            for file, name in traces[folder]:
                if single or (rank is not None and name.rank == rank):
                    counters_of[file.id].append(counters_file)
    return [file.with_counters(counters_of[file.id]) if file.id in counters_of else file for file in files]


def _holds_counters(file: ListedFile) -> bool:
    return file.name.lower().endswith(_COUNTERS)


def _counted_folder(path: str) -> str:
    """Return the folder of the traces that a file of counters belongs to, above the folder of a pass."""
    folder = posixpath.dirname(path)
    return posixpath.dirname(folder) if _PASS.match(posixpath.basename(folder)) else folder


def is_engine_log(path: str) -> bool:
    """Return whether the name of a file says that it may be the log of a server."""
    return _ENGINE_LOG.search(path)


def with_request_files(files: Sequence[ListedFile], is_trace: Callable[[ListedFile], bool]) -> list[ListedFile]:
    """Return the files in their order, where each trace has the files with the requests of its run.

    is_trace  whether a file is a trace; called only if its name leaves that open
    """
    beside: dict[str, list[ListedFile]] = defaultdict(list)
    for file in files:
        if (_SPANS.search(file.path) or is_engine_log(file.path)) and not is_trace(file):
            beside[run_folder(file.path)].append(file)
    if not beside:
        return list(files)

    def with_own(file: ListedFile) -> ListedFile:
        own = beside.get(run_folder(file.path), [])
        name = parse_file_name(file.name)
        if not own or name is None or not (name.certain or is_trace(file)):
            return file
        return file.with_requests(sorted(own, key=lambda each: each.path)[:MAX_REQUEST_FILES])

    return [with_own(file) for file in files]
