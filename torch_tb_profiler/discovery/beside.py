"""PyTorch's own file beside Composer's of the same rank and window: it describes the devices and the job.

run/traces/ep0-ba4-rank1.json             events of the trainer, and a copy of PyTorch's without that description
run/torch_traces/rank1.4.pt.trace.json    what PyTorch itself wrote
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from torch_tb_profiler.discovery.catalog import ListedFile

_RUN, _END = r"^(?P<run>(?:.*/)?)", r"\.json(?:\.gz)?$"
_TRAINER = re.compile(rf"{_RUN}traces/ep\d+-ba(?P<batch>\d+)-rank(?P<rank>\d+){_END}")
_PYTORCH = re.compile(rf"{_RUN}torch_traces/rank(?P<rank>\d+)\.(?P<batch>\d+)\.pt\.trace{_END}")


def files_beside(files: Iterable[ListedFile]) -> dict[str, ListedFile]:
    """By the path of Composer's file the one of PyTorch; each of these belongs to one of those."""
    trainers: dict[tuple[str, ...], str] = {}
    others: dict[tuple[str, ...], ListedFile] = {}
    for file in files:
        if match := _TRAINER.match(file.path):
            trainers[_window(match)] = file.path
        elif match := _PYTORCH.match(file.path):
            others[_window(match)] = file
    return {path: others[window] for window, path in trainers.items() if window in others}


def _window(match: re.Match[str]) -> tuple[str, ...]:
    return match["run"], str(int(match["rank"])), str(int(match["batch"]))
