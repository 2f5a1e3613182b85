"""PyTorch's own files beside Composer's: they describe the devices and the job.

run/traces/ep0-ba4-rank1.json             events of the trainer, and a copy of PyTorch's without that description
run/traces/node0.json                     the same of all ranks of a node, merged
run/torch_traces/rank1.4.pt.trace.json    what PyTorch itself wrote of a rank and window
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from torch_tb_profiler.discovery.catalog import ListedFile, Span, Worker

_RUN, _END = r"^(?P<run>(?:.*/)?)", r"\.json(?:\.gz)?$"
_TRAINER = re.compile(rf"{_RUN}traces/ep\d+-ba(?P<batch>\d+)-rank(?P<rank>\d+){_END}")
_MERGED = re.compile(rf"{_RUN}traces/(?:node\d+|merged_trace){_END}")
_PYTORCH = re.compile(rf"{_RUN}torch_traces/rank(?P<rank>\d+)\.(?P<batch>\d+)\.pt\.trace{_END}")


def files_beside(files: Iterable[ListedFile]) -> dict[str, tuple[ListedFile, ...]]:
    """By the path of Composer's file those of PyTorch that may belong to it, by rank and batch.

    A merged file has those of all ranks. Beside files of single ranks it repeats what they hold and has none. Of
    several merged files names do not tell which rank lies in which: each has all, and takes those of its ranks.
    """
    trainers: dict[tuple[str, int, int], str] = {}
    merged: dict[str, list[str]] = defaultdict(list)
    others: dict[tuple[str, int, int], ListedFile] = {}
    for file in files:
        if match := _TRAINER.match(file.path):
            trainers[_window(match)] = file.path
        elif match := _MERGED.match(file.path):
            merged[match["run"]].append(file.path)
        elif match := _PYTORCH.match(file.path):
            others[_window(match)] = file
    single = {run for run, _, _ in trainers}
    beside: dict[str, list[ListedFile]] = defaultdict(list)
    for window in sorted(others):
        run = window[0]
        if window in trainers:
            beside[trainers[window]].append(others[window])
        elif run not in single:
            for path in merged[run]:
                beside[path].append(others[window])
    return {path: tuple(listed) for path, listed in beside.items()}


def is_merged(file: ListedFile) -> bool:
    """Whether files of PyTorch of several ranks may belong to it."""
    return bool(file.beside) and _MERGED.match(file.path) is not None


def unmerged(read: Mapping[ListedFile, frozenset[int]]) -> list[Worker]:
    """The ranks whose files of PyTorch lie beside merged files that do not hold them, a worker each.

    read  every merged file of a run with the ranks that it holds; none where it cannot be read
    """
    held = {
        other.path for file, ranks in read.items() for other in file.beside if rank_beside(other.path) in ranks
    }
    left: dict[int, dict[str, ListedFile]] = defaultdict(dict)
    for file in read:
        for other in file.beside:
            if other.path not in held:
                left[rank_beside(other.path)][other.path] = other
    return [_worker(rank, list(left[rank].values())) for rank in sorted(left)]


def _worker(rank: int, files: Sequence[ListedFile]) -> Worker:
    spans = [(int(match["batch"]), file) for file in files if (match := _PYTORCH.match(file.path))]
    ordered = sorted(spans, key=lambda span: (span[0], span[1].path))
    return Worker(
        f"torch_traces/rank{rank}",
        rank,
        tuple(Span(str(number), str(batch), file) for number, (batch, file) in enumerate(ordered, 1)),
    )


def rank_beside(path: str) -> int:
    """The rank of a file of PyTorch that lies beside another one."""
    match = _PYTORCH.match(path)
    assert match is not None, path
    return int(match["rank"])


def _window(match: re.Match[str]) -> tuple[str, int, int]:
    return match["run"], int(match["rank"]), int(match["batch"])
