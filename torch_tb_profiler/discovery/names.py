"""The conventions of file and folder names: worker, rank, and span of a trace.

<worker>.<ms or ns>.pt.trace.json[.gz]       torch.profiler's TensorBoard handler
rank<r>.<batch>.pt.trace.json, ep<e>-ba<b>-rank<r>.json      Composer
iteration_<n>/rank<r>_trace.json             torchtitan
rank<r>/<worker>.<ms>.pt.trace.json          one folder per rank
<stamp>-TP-0-DP-0-PP-0-EP-0.trace.json.gz    sglang
trace.json, trace_step<n>.json, rank-<r>.json.gz             exported by hand
rank_<rr>_metrics.jsonl                      AORTA
<worker>_<stamp>_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json      Ascend, and profiler_info_<rank>.json beside
                                             that folder
*.csv, *.prom                                samples of nvidia-smi, amd-smi, and DCGM, by their content
<host>/<pid>_results.db, .json, .pftrace     rocprofv3, and <pid>_kernel_trace.csv, <pid>_hip_api_trace.csv, ...
*.pickle, *.raw.json[.gz]                                    memory snapshots and timelines, beside traces
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timezone

import msgspec

from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.ingest.formats import may_be_separate_run, trace_suffix

_PARALLEL = lazy_regex(r"^(?:(?P<stamp>.*?)[-_.])?(?P<worker>(?:(?:TP|DP|PP|EP|CP)-?\d+[-_]?)+)$", re.IGNORECASE)
_COMPOSER = lazy_regex(r"^ep(?P<epoch>\d+)-ba(?P<batch>\d+)-(?P<worker>rank\d+)$")
_METRICS = lazy_regex(r"^rank_(?P<rank>\d{1,9})_metrics$")
_RESULTS = lazy_regex(r"^(?P<worker>.+)_results$")
TABLE_KINDS = (
    "kernel",
    "memory_copy",
    "hip_api",
    "hsa_api",
    "rccl_api",
    "marker_api",
    "rocdecode_api",
    "rocjpeg_api",
)
"""Kinds of rocprofv3 tables that hold records; the first one present names the trace of a recording."""

TABLE_NAME_PATTERN = rf"(?P<kind>{'|'.join(TABLE_KINDS)})_trace"
"""Regular expression of the end of such a table's name, without suffix."""

_TABLE = lazy_regex(rf"^(?:(?P<worker>.+)_)?{TABLE_NAME_PATTERN}$", re.IGNORECASE)
_NUMBERED = lazy_regex(r"^(?P<worker>.*?trace)[-_.]?(?:step|iter|iteration)[-_]?(?P<stamp>\d+)$", re.IGNORECASE)
_RANK = lazy_regex(r"(?:^|[^a-z])rank[-_]?(\d+)(?:[^0-9]|$)", re.IGNORECASE)
_NODE = lazy_regex(r"^(?:node|merged_trace)\d*$", re.IGNORECASE)
_MERGED = lazy_regex(r"^(?:(?:node|merged_trace)\d*|merged-.+)$", re.IGNORECASE)
RANK_FOLDER = lazy_regex(r"^rank[-_]?\d+$", re.IGNORECASE)
SPAN_FOLDER = lazy_regex(r"^(?:iteration|iter|step)[-_]?(\d+)$", re.IGNORECASE)
_ASCEND_END = "_ascend_pt/"
_ASCEND_FOLDER = r"(?:(?P<run>.+)/)?(?P<worker>[^/]+)_(?P<stamp>\d{14,20})_ascend_pt"
_ASCEND_TRACE = lazy_regex(rf"^(?P<folder>{_ASCEND_FOLDER})/ASCEND_PROFILER_OUTPUT/trace_view\.json(?:\.gz)?$")
_ASCEND_INFO = lazy_regex(rf"^(?P<folder>{_ASCEND_FOLDER})/profiler_info_(?P<rank>\d{{1,9}})\.json$")


class FileName(msgspec.Struct, frozen=True):
    """What a file name says about a trace.

    rank     None if the name has none
    stamp    text that orders the spans of a worker, or None
    certain  the name alone shows that this is a trace
    """

    worker: str
    rank: int | None
    stamp: str | None
    certain: bool


def parse_file_name(name: str) -> FileName | None:
    """Parse a file name without folders; return None if no trace format uses such names."""
    suffix = trace_suffix(name)
    if suffix is None:
        return None
    stem = name[: -len(suffix)]
    if may_be_separate_run(name):
        table = _TABLE.match(stem)
        worker = stem if table is None else table["worker"]
        return FileName(worker or "worker", None if table is None else rank_in_name(stem), None, False)
    certain = stem[-6:].lower() == ".trace"
    if certain:
        stem = stem[:-6]
        stem = stem[:-3] if stem[-3:].lower() == ".pt" else stem
    stamp = None
    begin, dot, end = stem.rpartition(".")
    numbered = stem.rstrip("-_")[-1:].isdigit()  # names without a number at their end match fewer patterns
    if numbered and (match := _COMPOSER.match(stem)):
        worker, certain = match["worker"], True
        stamp = f"ep{match['epoch']}-ba{match['batch']}"
    elif stem.endswith("_metrics") and (match := _METRICS.match(stem)):
        worker = f"rank{int(match['rank'])}"
    elif stem.endswith("_results") and (match := _RESULTS.match(stem)):
        worker = match["worker"]
    elif certain and numbered and (match := _PARALLEL.match(stem)):
        worker, stamp = match["worker"], match["stamp"]
    elif dot and end.isdecimal():
        worker, stamp = begin, end
    elif numbered and (match := _NUMBERED.match(stem)):
        worker, stamp = match["worker"], match["stamp"]
    else:
        worker = stem[:-6] if stem[-6:].lower() in ("-trace", "_trace", ".trace") else stem
        worker = worker or stem
        certain = certain or worker != stem or stem.lower() == "trace" or bool(_NODE.match(stem))
    return FileName(worker or "worker", rank_in_name(stem), stamp, certain)


def is_merged_file_name(worker: str) -> bool:
    """Return whether a worker's name is one that Composer and sglang give to a file of several ranks."""
    return _MERGED.match(worker.rsplit("/", 1)[-1]) is not None


def rank_in_name(text: str) -> int | None:
    """Return the rank that a name contains (`rank3`, `rank_3`, `x-rank-3-y`), or None."""
    match = _RANK.search(text) if "rank" in text.lower() else None
    return int(match.group(1)) if match and len(match.group(1)) < 10 else None


_EPOCH_UNITS = ((10**18, 1), (10**15, 10**3), (10**11, 10**6))
"""(smallest number, unit in ns) of stamps that count since the epoch: ns and µs from 2001 on, ms from 1973 on."""


def stamp_order(stamp: str | None) -> tuple[int, tuple[int, ...], str]:
    """Return the sort key of a span's stamp.

    Numbers sort as numbers, times in ms, µs, and ns on one axis, and a missing stamp comes first.
    """
    if stamp is None:
        return (0, (), "")
    return (1, tuple(_epoch_ns(int(digits)) for digits in re.findall(r"\d+", stamp)), stamp)


def _epoch_ns(number: int) -> int:
    """Return a time since the epoch in ns; a number that is no time (a step, an epoch) stays as it is."""
    return number * next((unit for smallest, unit in _EPOCH_UNITS if number >= smallest), 1)


def stamp_label(stamp: str | None) -> str:
    """Format a stamp for people: as a UTC time if it is ms, µs, or ns since the epoch, otherwise unchanged."""
    if stamp is None:
        return ""
    if stamp.isdecimal() and len(stamp) in (13, 16, 19):
        seconds = int(stamp) / 10 ** (len(stamp) - 10)
        return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    return stamp


class AscendPlace(msgspec.Struct, frozen=True):
    """What the folders around one of Ascend's traces say; `run` is "" in the log folder itself."""

    run: str
    worker: str
    rank: int | None
    stamp: str


class AscendFolders:
    """Ascend's trace folders among some paths: one per process and recording; a file in it names the rank."""

    def __init__(self, paths: Iterable[str]) -> None:
        matches = [match for path in paths if _ASCEND_END in path and (match := _ASCEND_INFO.match(path))]
        self._ranks = {match["folder"]: int(match["rank"]) for match in matches}

    def place(self, path: str) -> AscendPlace | None:
        """Return what the folders around a trace say, or None for any other file."""
        match = _ASCEND_TRACE.match(path) if _ASCEND_END in path else None
        if match is None:
            return None
        rank = self._ranks.get(match["folder"])
        worker = match["worker"] if rank is None else f"rank{rank}"
        return AscendPlace(match["run"] or "", worker, rank, match["stamp"])
