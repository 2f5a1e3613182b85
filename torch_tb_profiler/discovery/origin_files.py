"""Find the files beside a trace that explain it: where its kernels come from, and what its recorder was asked for.

run/rank0.1.pt.trace.json                                     the trace
run/rank0.1.pt.trace.json.py_stacks.json.gz                   launch stacks of its graph nodes
run/kernel_annotations.pkl                                    annotations of graph nodes
run/rank0.1.compiled.log                                      compile record of `torch_tb_profiler.handler`
run/torch_trace/dedicated_log_torch_trace_rank_0_x.log        compile record of TORCH_TRACE
run/kernel_information.json                                   compile record of a package of AOTInductor
run/capture_traces/bs_16_rank0.json                           captures of its graphs, by batch size
run/graph_capture_rank_0.json, run/graph_capture_rank_0/...   captures of its graphs
run_capture/rank0.1.pt.trace.json                             a run with the captures of this run's graphs
run/prof_config.json                                          configuration of Gaudi's profiler
rank_00_metrics.jsonl, run/rank0/...                          AORTA's metrics of the process, in a folder above
artifacts/rank_00_metrics.jsonl, rocprof_traces/run_1/...     ... or beside the folder of its rocprofv3 capture
other/rank0.1.pt.trace.json.py_stacks.json.gz                 perhaps of the same recording by another exporter
"""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Literal

from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.discovery.catalog import ListedFile
from torch_tb_profiler.discovery.names import RANK_FOLDER, SPAN_FOLDER, parse_file_name, rank_in_name

OriginKind = Literal["capture", "compile log", "package", "stacks", "annotations", "configuration"]

MAX_FILES = 512
"""Most files of origins that belong to one trace; a server captures up to some hundred batch sizes."""

MAX_OTHER_STACKS = 4
"""Most files of launch stacks that may be of the same recording: for each, a trace is read."""

CAPTURE_SUFFIX = "_capture"
"""End of the name of a run that holds the captures of the run with the name before it."""

_TRACE_FILE = r"[^/]+\.json(?:\.gz)?$"
_CAPTURE = lazy_regex(
    rf"^(?P<run>(?:.*?/)?)(?:capture_traces/{_TRACE_FILE}|graph_capture_rank_\d+(?:/{_TRACE_FILE}|[^/]*\.json(?:\.gz)?$))"
)
_COMPILE_LOG = lazy_regex(
    r"^(?P<run>(?:.*?/)?)(?:(?P<worker>[^/]+?)(?:\.(?P<stamp>\d+))?\.compiled\.log|"
    r"(?:torch_trace/)?dedicated_log_torch_trace[^/]*\.log|torch_trace/[^/]+\.log)$"
)
_PACKAGE = lazy_regex(r"^(?P<run>(?:.*?/)?)(?:[^/]+[._-])?kernel_information\.json$")
STACKS_SUFFIX = ".py_stacks.json.gz"
_ANNOTATIONS = lazy_regex(r"^(?P<run>(?:.*?/)?)[^/]*annotations[^/]*\.(?:pkl|pickle)$", re.IGNORECASE)
_METRICS = lazy_regex(r"^rank_\d{1,9}_metrics\.jsonl(?:\.gz)?$")
ROCPROF_FOLDER = "rocprof_traces"
"""Folder of AORTA's captures with rocprofv3, beside the folder of its metrics."""
_CONFIGURATION = lazy_regex(r"^(?P<run>(?:.*?/)?)prof_config\.json$")


def is_metrics_file(path: str) -> bool:
    """Return whether a file is named like the iteration metrics of a rank, which are a trace of their own, too."""
    name = posixpath.basename(path)
    return name.startswith("rank_") and _METRICS.match(name) is not None


def origin_kind(path: str) -> OriginKind | None:
    """Return what the name of a file says that it holds about a trace, None if nothing."""
    if not _may_be_origin(path):
        return None
    if path.endswith(STACKS_SUFFIX):
        return "stacks"
    if _COMPILE_LOG.match(path):
        return "compile log"
    if _PACKAGE.match(path):
        return "package"
    if _ANNOTATIONS.match(path):
        return "annotations"
    if _CONFIGURATION.match(path):
        return "configuration"
    return "capture" if _CAPTURE.match(path) else None


_MARKS = (
    ".py_stacks.",
    ".log",
    "kernel_information.",
    "annotations",
    "prof_config.",
    "capture_traces/",
    "graph_capture_rank_",
)
"""Each name of a file of origins has at least one, apart from case: most files have none, which is seen faster."""


def _may_be_origin(path: str) -> bool:
    path = path.lower()
    return any(mark in path for mark in _MARKS)


def capture_owner(path: str) -> str | None:
    """Return the folder of the run whose graphs a trace captured, by its path; None if the path says nothing."""
    match = _CAPTURE.match(path) if _may_be_origin(path) else None
    return match["run"].rstrip("/") if match else None


def run_folder(path: str) -> str:
    """Return the folder of the run of a file: its own folder without those of ranks and iterations."""
    folders = path.split("/")[:-1]
    while folders and (RANK_FOLDER.match(folders[-1]) or SPAN_FOLDER.match(folders[-1])):
        folders.pop()
    return "/".join(folders)


def with_origin_files(files: Sequence[ListedFile], is_trace: Callable[[ListedFile], bool]) -> list[ListedFile]:
    """Return the files in their order, where each trace has the files that say where its kernels come from.

    is_trace  whether a file is a trace; called only if its name leaves that open
    """
    beside: dict[str, list[ListedFile]] = defaultdict(list)
    for file in files:
        folder = _origin_folder(file.path)
        if folder is not None:
            beside[folder].append(file)
    runs = {run_folder(file.path) for file in files}
    captured = {folder for folder in runs if folder and f"{folder}{CAPTURE_SUFFIX}" in runs}
    for file in files:
        folder = run_folder(file.path)
        if folder.endswith(CAPTURE_SUFFIX) and folder.removesuffix(CAPTURE_SUFFIX) in captured:
            if origin_kind(file.path) in (None, "capture") and _may_be_trace(file, is_trace):
                beside[folder.removesuffix(CAPTURE_SUFFIX)].append(file)
    metrics: dict[str, list[ListedFile]] = defaultdict(list)
    for file in files:
        if is_metrics_file(file.path):
            metrics[posixpath.dirname(file.path)].append(file)
    if not beside and not metrics:
        return list(files)
    stacks: dict[str, list[ListedFile]] = defaultdict(list)
    for file in files:
        if file.path.endswith(STACKS_SUFFIX):
            stacks[posixpath.basename(stacks_owner(file.path))].append(file)
    return [
        _with_files(
            file,
            [
                *beside.get(run_folder(file.path), []),
                *_other_stacks(file, stacks),
                *_metrics_above(file, metrics),
            ],
            is_trace,
        )
        for file in files
    ]


def _metrics_above(file: ListedFile, metrics: dict[str, list[ListedFile]]) -> list[ListedFile]:
    """Return the iteration metrics in the next folder above a file that has any, or beside `rocprof_traces`."""
    folder = file.path
    while folder and metrics and not is_metrics_file(file.path):
        folder = posixpath.dirname(folder)
        if folder in metrics:
            return metrics[folder]
        if posixpath.basename(folder) == ROCPROF_FOLDER:
            parent = posixpath.dirname(folder)
            beside = [listed for other, listed in metrics.items() if posixpath.dirname(other) == parent and other]
            if beside:
                return [each for listed in beside for each in listed]
    return []


def stacks_owner(path: str) -> str:
    """Return the trace that launch stacks lie beside, without `.gz`."""
    return path.removesuffix(STACKS_SUFFIX).removesuffix(".gz")


def _other_stacks(file: ListedFile, stacks: dict[str, list[ListedFile]]) -> list[ListedFile]:
    """Return launch stacks of traces with this file's name in other folders, if it has none of its own."""
    path = file.path.removesuffix(".gz")
    named = stacks.get(posixpath.basename(path), [])
    return [] if any(stacks_owner(each.path) == path for each in named) else named[:MAX_OTHER_STACKS]


def _origin_folder(path: str) -> str | None:
    """Return the folder of the run that a file of origins belongs to, None for any other file."""
    if not _may_be_origin(path):
        return None
    if path.endswith(STACKS_SUFFIX):
        return run_folder(path)
    for pattern in (_COMPILE_LOG, _PACKAGE, _ANNOTATIONS, _CONFIGURATION, _CAPTURE):
        if match := pattern.match(path):
            return match["run"].rstrip("/")
    return None


def _may_be_trace(file: ListedFile, is_trace: Callable[[ListedFile], bool]) -> bool:
    name = parse_file_name(file.name)
    return name is not None and (name.certain or is_trace(file))


def _with_files(
    file: ListedFile, beside: Sequence[ListedFile], is_trace: Callable[[ListedFile], bool]
) -> ListedFile:
    """Return a trace with those of its run's files of origins that may be its own; any other file as it is."""
    if not beside or origin_kind(file.path) is not None or not _may_be_trace(file, is_trace):
        return file
    name, rank = parse_file_name(file.name), rank_in_name(file.path)
    worker = name.worker if name is not None else ""
    own = [each for each in beside if each.path != file.path and _is_of_trace(each.path, file.path, worker, rank)]
    return file.with_origins(sorted(own, key=lambda each: each.path)[:MAX_FILES]) if own else file


def _is_of_trace(path: str, trace: str, worker: str, rank: int | None) -> bool:
    """Return whether a file of origins in the run of a trace may be of this trace's process."""
    if path.endswith(STACKS_SUFFIX):
        owner = stacks_owner(path)
        return posixpath.basename(owner) == posixpath.basename(trace.removesuffix(".gz"))
    match = _COMPILE_LOG.match(path)
    if match and match["worker"] is not None and "dedicated_log" not in posixpath.basename(path):
        return str(match["worker"]) == worker
    other = rank_in_name(posixpath.basename(path))
    other = rank_in_name(path) if other is None else other
    return rank is None or other is None or rank == other
