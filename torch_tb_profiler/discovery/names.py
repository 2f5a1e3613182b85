"""What a file's name says: worker, rank, span. Pure functions of strings.

<worker>.<ms or ns>.pt.trace.json[.gz]       torch.profiler's TensorBoard handler
rank<r>.<batch>.pt.trace.json, ep<e>-ba<b>-rank<r>.json      Composer
iteration_<n>/rank<r>_trace.json             torchtitan
rank<r>/<worker>.<ms>.pt.trace.json          one folder per rank
<stamp>-TP-0-DP-0-PP-0-EP-0.trace.json.gz    sglang
trace.json, trace_step<n>.json, rank-<r>.json.gz             exported by hand
rank_<rr>_metrics.jsonl                      AORTA
<worker>_<stamp>_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json      Ascend
*.csv, *.prom                                samples of nvidia-smi, amd-smi and DCGM, by what they hold
<host>/<pid>_results.db, .json, .pftrace     rocprofv3, and <pid>_kernel_trace.csv, <pid>_hip_api_trace.csv, ...
*.pickle, *.raw.json[.gz]                                    memory snapshots and timelines, beside traces
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timezone

from torch_tb_profiler.ingest.formats import may_be_separate_run, trace_suffix

_TRACE = re.compile(r"(?:\.pt)?\.trace$", re.IGNORECASE)
_STAMPED = re.compile(r"^(?P<worker>.*?)\.(?P<stamp>\d+)$", re.DOTALL)
_PARALLEL = re.compile(r"^(?:(?P<stamp>.*?)[-_.])?(?P<worker>(?:(?:TP|DP|PP|EP|CP)-?\d+[-_]?)+)$", re.IGNORECASE)
_COMPOSER = re.compile(r"^ep(?P<epoch>\d+)-ba(?P<batch>\d+)-(?P<worker>rank\d+)$")
_METRICS = re.compile(r"^rank_(?P<rank>\d{1,9})_metrics$")
_RESULTS = re.compile(r"^(?P<worker>.+)_results$")
TABLES = ("kernel", "memory_copy", "hip_api", "hsa_api", "rccl_api", "marker_api", "rocdecode_api", "rocjpeg_api")
"""Of records of rocprofv3; the first that is there gives the trace of all its name."""

NAMES_OF_TABLES = rf"(?P<kind>{'|'.join(TABLES)})_trace"
_TABLE = re.compile(rf"^(?:(?P<worker>.+)_)?{NAMES_OF_TABLES}$", re.IGNORECASE)
_NUMBERED = re.compile(r"^(?P<worker>.*?trace)[-_.]?(?:step|iter|iteration)[-_]?(?P<stamp>\d+)$", re.IGNORECASE)
_RANK = re.compile(r"(?:^|[^a-z])rank[-_]?(\d+)(?:[^0-9]|$)", re.IGNORECASE)
_NODE = re.compile(r"^(?:node|merged_trace)\d*$", re.IGNORECASE)
_MERGED = re.compile(r"^(?:(?:node|merged_trace)\d*|merged-.+)$", re.IGNORECASE)
RANK_FOLDER = re.compile(r"^rank[-_]?\d+$", re.IGNORECASE)
SPAN_FOLDER = re.compile(r"^(?:iteration|iter|step)[-_]?(\d+)$", re.IGNORECASE)


@dataclass(frozen=True)
class FileName:
    """`certain`: the name alone says that this is a trace. `stamp`: what orders the spans, or None."""

    worker: str
    rank: int | None
    stamp: str | None
    certain: bool


def parse_file_name(name: str) -> FileName | None:
    """What a file name (without folders) says; None if no format of traces has such names."""
    suffix = trace_suffix(name)
    if suffix is None:
        return None
    stem = name[: -len(suffix)]
    if may_be_separate_run(name):
        table = _TABLE.match(stem)
        worker = stem if table is None else table["worker"]
        return FileName(worker or "worker", None if table is None else rank_in(stem), None, False)
    certain = _TRACE.search(stem) is not None
    stem = _TRACE.sub("", stem)
    stamp = None
    if match := _COMPOSER.match(stem):
        worker, certain = match["worker"], True
        stamp = f"ep{match['epoch']}-ba{match['batch']}"
    elif match := _METRICS.match(stem):
        worker = f"rank{int(match['rank'])}"
    elif match := _RESULTS.match(stem):
        worker = match["worker"]
    elif certain and (match := _PARALLEL.match(stem)):
        worker, stamp = match["worker"], match["stamp"]
    elif match := _STAMPED.match(stem):
        worker, stamp = match["worker"], match["stamp"]
    elif match := _NUMBERED.match(stem):
        worker, stamp = match["worker"], match["stamp"]
    else:
        worker = re.sub(r"[-_.]trace$", "", stem, flags=re.IGNORECASE) or stem
        certain = certain or worker != stem or stem.lower() == "trace" or bool(_NODE.match(stem))
    return FileName(worker or "worker", rank_in(stem), stamp, certain)


def names_merged_file(worker: str) -> bool:
    """Whether a worker has the name that Composer and sglang give to a file of several ranks."""
    return _MERGED.match(worker.rsplit("/", 1)[-1]) is not None


def rank_in(text: str) -> int | None:
    """The rank that a name spells out (`rank3`, `rank_3`, `x-rank-3-y`), else None."""
    match = _RANK.search(text)
    return int(match.group(1)) if match and len(match.group(1)) < 10 else None


_CLOCKS = ((10**18, 1), (10**15, 10**3), (10**11, 10**6))
"""From which number on a stamp is a time since the epoch, and its unit in ns: later than 2001, 2001 and 1973."""


def stamp_order(stamp: str | None) -> tuple[int, tuple[int, ...], str]:
    """Sort key of a span's stamp: numbers as numbers, stamps in ms, µs and ns on one axis, none first."""
    if stamp is None:
        return (0, (), "")
    return (1, tuple(_number(int(digits)) for digits in re.findall(r"\d+", stamp)), stamp)


def _number(number: int) -> int:
    """A time in ns; a number that is no time (a step, an epoch) as it is."""
    return number * next((unit for least, unit in _CLOCKS if number >= least), 1)


def stamp_label(stamp: str | None) -> str:
    """A stamp for people: a UTC time if it is one (ms, µs or ns since the epoch), else itself."""
    if stamp is None:
        return ""
    if stamp.isdecimal() and len(stamp) in (13, 16, 19):
        seconds = int(stamp) / 10 ** (len(stamp) - 10)
        return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    return stamp
