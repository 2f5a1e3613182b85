"""Memory snapshots without a trace beside them: what their names say about process and moment.

rank0_memory_snapshot.pickle in iteration_10/, iteration_10_oom/, iteration_10_exit/    torchtitan, torchtune
memory_snapshot-rank3.pickle, prof_memsnap_r3.pkl, actor3_snapshot.pickle    Lightning and NeMo, training scripts
rank0.120.memory_snapshot.pickle                                             Composer
<host>_Nov_25_20_33_32.pickle                                                PyTorch's guide to GPU memory
<stamp>-TP-0-memory.pickle                                                   sglang
memory_snapshot_<step>.pickle, snapshot.pickle, before.pickle                scripts, vLLM
rank3/...                                                                    one folder per rank
"""

from __future__ import annotations

import posixpath
import re
from typing import NamedTuple

from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.discovery.names import RANK_FOLDER, rank_in_name

_SUFFIX = lazy_regex(r"\.(?:pickle|pkl)(?:\.gz)?$", re.IGNORECASE)
_STEP_FOLDER = lazy_regex(
    r"^(?:iteration|iter|global_step|step|epoch)[-_]?(?P<number>\d+)(?:[-_](?P<what>[a-z]+))?$", re.IGNORECASE
)
_SHORT_RANK = lazy_regex(
    r"(?:^|[-_.])(?:r|actor|worker|gpu|proc|process)[-_]?(?P<rank>\d{1,9})(?=[-_.]|$)", re.IGNORECASE
)
_RANK = lazy_regex(r"(?:global[-_]?|local[-_]?)?rank[-_]?\d{1,9}", re.IGNORECASE)
_PARALLEL = lazy_regex(
    r"(?:^|[-_.])(?P<worker>(?:TP|DP|PP|EP|CP)-?\d+(?:[-_](?:TP|DP|PP|EP|CP)-?\d+)*)(?=[-_.]|$)", re.IGNORECASE
)
_DATE = lazy_regex(
    r"[A-Z][a-z]{2}_\d{1,2}_\d{1,2}_\d{1,2}_\d{1,2}|"
    r"(?<!\d)20\d{2}[-_]?\d{2}[-_]?\d{2}(?:[-_T.]?\d{2}[-_:.]?\d{2}(?:[-_:.]?\d{2})?)?(?!\d)"
)
_NUMBER = lazy_regex(
    r"(?:(?:global_?step|step|iteration|iter|epoch|batch|ep|ba|time)[-_]?)?\d+(?:\.\d+)?", re.IGNORECASE
)
_SEPARATORS = "-_. "

PROCESS = "process"
"""Worker of the snapshots whose names give neither rank nor moment: dumps of one process, by name."""


class SnapshotPlace(NamedTuple):
    """Where a snapshot belongs: the folder of its run ("" is the log folder), its worker, and its moment."""

    run: str
    worker: str
    rank: int | None
    stamp: str | None


def is_step_folder(folder: str) -> bool:
    """Return whether a folder of this name holds the snapshots of one step (`iteration_10_oom`)."""
    return _STEP_FOLDER.match(folder) is not None


def snapshot_place(path: str) -> SnapshotPlace:
    """Return what the name of a snapshot and the folders around it say."""
    folder, name = posixpath.split(path)
    folders = folder.split("/") if folder else []
    stem = _SUFFIX.sub("", name)
    rank = rank_in_name(stem)
    stamps: list[str] = []
    worker = None if rank is None else f"rank{rank}"
    while folders:
        if RANK_FOLDER.match(folders[-1]):
            rank = rank_in_name(folders[-1]) if rank is None else rank
            worker, folders = f"rank{rank}", folders[:-1]
        elif match := _STEP_FOLDER.match(folders[-1]):
            stamps.insert(0, " ".join(part for part in (match["number"], match["what"]) if part))
            folders = folders[:-1]
        else:
            break
    rest = _RANK.sub("", stem, count=1) if rank_in_name(stem) is not None else stem
    if worker is None and (match := _PARALLEL.search(rest)):
        worker, rest = match["worker"], rest[: match.start()] + rest[match.end() :]
    if worker is None and (match := _SHORT_RANK.search(rest)):
        rank, rest = int(match["rank"]), rest[: match.start()] + rest[match.end() :]
        worker = f"rank{rank}"
    moment = _DATE.search(rest) or _last_number(rest)
    if moment is not None:
        stamps.append(re.sub(r"^\D+_?(?=\d+$)", "", moment[0].strip(_SEPARATORS)))
        rest = rest[: moment.start()] + rest[moment.end() :]
    if worker is None:
        worker = (rest.strip(_SEPARATORS) or PROCESS) if moment is not None else PROCESS
    return SnapshotPlace("/".join(folders), worker, rank, ".".join(stamps) or None)


def _last_number(text: str) -> re.Match[str] | None:
    """Return the last number of a name that stands by itself (`_100`, `step200`), or None."""
    found = [
        match
        for match in _NUMBER.finditer(text)
        if (match.end() == len(text) or text[match.end()] in _SEPARATORS)
        and (match.start() == 0 or text[match.start() - 1] in _SEPARATORS or match[0][0].isalpha())
    ]
    return found[-1] if found else None
