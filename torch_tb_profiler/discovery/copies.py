"""Duplicates: files that repeat what others of the same run hold."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator

from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.discovery.catalog import ListedFile
from torch_tb_profiler.discovery.names import TABLE_NAME_PATTERN
from torch_tb_profiler.ingest.formats import trace_suffix

_AORTA = lazy_regex(r"(?:^|/)torch_profiler/rank\d+/[^/]+$")
_HANDLER = lazy_regex(r"\.pt\.trace\.json(?:\.gz)?$")

_WANDB_RUN = lazy_regex(r"^(?P<folder>(?:.*/)?)(?:offline-)?run-\d{8}_\d{6}-[^/]+/(?P<file>.+)$")
_WANDB_LATEST = lazy_regex(r"^(?P<folder>(?:.*/)?)latest-run/(?P<file>.+)$")

_END = r"\.json(?:\.gz)?$"
_MERGES = tuple(
    (lazy_regex(f"^{merged}{_END}"), lazy_regex(f"^{single}{_END}"))
    for merged, single in (
        (r"(?P<id>)(?:node\d+|merged_trace)", r"(?P<id>)ep\d+-ba\d+-rank\d+"),
        (r"(?P<id>)merged_trace", r"(?P<id>)node\d+"),
        (r"merged-(?P<id>.+)\.trace", r"(?P<id>.+?)-TP-\d+.*\.trace"),
    )
)
"""(name of a merged file, names of the files merged into it) of Composer, whose nodes can be merged once more, and
of sglang. Both lie in one folder and share the id."""

_FORMATS = (
    r"\.db",
    r"(?:\.pt)?(?:\.trace)?\.json",
    r"(?:\.pt)?(?:\.trace)?\.(?:pftrace|perfetto-trace)",
    rf"(?P<tables>_{TABLE_NAME_PATTERN})\.csv",
)
_FORMAT_NAMES = [lazy_regex(rf"^(?P<stem>.+?){end}(?:\.gz)?$", re.IGNORECASE) for end in _FORMATS]
"""Names of the formats in which a tool can write the same recording, most detailed first."""


def find_other_formats(traces: Iterable[str]) -> dict[str, list[str]]:
    """Return the less detailed formats of each trace whose recording has several, most detailed first.

    Of several traces of one recording in the most detailed format, the first one has the others.
    """
    by_stem: dict[str, list[list[str]]] = {}
    for path in traces:
        for number, pattern in enumerate(_FORMAT_NAMES):
            if match := pattern.match(path):
                # `7_kernel_trace.csv` and its like repeat `7_results.db`.
                stem = f"{match['stem']}_results" if "tables" in match.groupdict() else match["stem"]
                by_stem.setdefault(stem, [[] for _ in _FORMAT_NAMES])[number].append(path)
                break
    found: dict[str, list[str]] = {}
    for formats in by_stem.values():
        best, *others = [paths for paths in formats if paths]
        if others:
            found[best[0]] = [path for paths in others for path in paths]
    return found


def find_copies(files: Iterable[ListedFile]) -> set[str]:
    """Return the paths of files that repeat other files."""
    paths = [file.path for file in files]
    return {*_manual_exports(paths), *_merged_files(paths), *_latest_runs(paths)}


def _manual_exports(paths: Iterable[str]) -> Iterator[str]:
    """Yield the windows that AORTA exports by hand beside the file that the handler writes of them."""
    exports = [path for path in paths if _AORTA.search(path) and trace_suffix(path)]
    handled = {posixpath.dirname(path) for path in exports if _HANDLER.search(path)}
    yield from (path for path in exports if posixpath.dirname(path) in handled and not _HANDLER.search(path))


def _latest_runs(paths: Iterable[str]) -> Iterator[str]:
    """Yield the files behind W&B's link `latest-run` that are listed in the folder of their run, too."""
    listed = {f"{match['folder']}{match['file']}" for path in paths if (match := _WANDB_RUN.match(path))}
    yield from (
        path
        for path in paths
        if (match := _WANDB_LATEST.match(path)) and f"{match['folder']}{match['file']}" in listed
    )


def _merged_files(paths: Iterable[str]) -> Iterator[str]:
    """Yield merged files beside the files of ranks (which also separate the cycles) or nodes that they repeat."""
    named = [(path, *posixpath.split(path)) for path in paths]
    for merge, single in _MERGES:
        singles = {(folder, match["id"]) for _, folder, name in named if (match := single.match(name))}
        yield from (
            path for path, folder, name in named if (m := merge.match(name)) and (folder, m["id"]) in singles
        )
