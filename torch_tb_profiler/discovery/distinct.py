"""Several log folders may have a run of the same name: the folder in front of it tells them apart.

log folders                 runs
/data/a  run1, run2         a/run1, run2
/data/b  run1               b/run1
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from torch_tb_profiler.discovery.catalog import Run


def distinct_names(listings: Sequence[tuple[str, Sequence[Run]]]) -> tuple[list[Run], list[str]]:
    """(all runs, each under a name of its own; why some are renamed) of log folders: (label, runs).

    A name that several folders have is preceded by as many folders of the label as it takes.
    """
    times = Counter(run.name for _, runs in listings for run in runs)
    shared = sorted(name for name, count in times.items() if count > 1)
    # The number of the log folder above all its folders: all parts together are always distinct.
    paths = [[str(at), *re.split(r"[/\\]+", label.rstrip("/\\"))] for at, (label, _) in enumerate(listings, 1)]
    for depth in range(1, max(map(len, paths), default=0) + 1):
        named = [
            replace(run, name="/".join((*path[-depth:], run.name))) if times[run.name] > 1 else run
            for path, (_, runs) in zip(paths, listings, strict=True)
            for run in runs
        ]
        if len({run.name for run in named}) == len(named):
            return named, [_reason(name) for name in shared]
    return [], []


def _reason(name: str) -> str:
    return (
        f"several log folders have a run {name!r}: each is shown with its folder in front; "
        "name the folders to choose what is shown (--logdir_spec=first:/path,second:/path)"
    )
