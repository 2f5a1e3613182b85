"""Files that repeat what others of the same run hold: each window of a rank is one span of one worker."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator

from torch_tb_profiler.discovery.catalog import ListedFile
from torch_tb_profiler.discovery.names import NAMES_OF_TABLES
from torch_tb_profiler.ingest.formats import trace_suffix

_AORTA = re.compile(r"(?:^|/)torch_profiler/rank\d+/[^/]+$")
_HANDLER = re.compile(r"\.pt\.trace\.json(?:\.gz)?$")

_END = r"\.json(?:\.gz)?$"
_MERGES = tuple(
    (re.compile(f"^{merged}{_END}"), re.compile(f"^{single}{_END}"))
    for merged, single in (
        (r"(?P<id>)(?:node\d+|merged_trace)", r"(?P<id>)ep\d+-ba\d+-rank\d+"),
        (r"(?P<id>)merged_trace", r"(?P<id>)node\d+"),
        (r"merged-(?P<id>.+)\.trace", r"(?P<id>.+?)-TP-\d+.*\.trace"),
    )
)
"""(name of a file that a tool merges, names of the files that it merges) of Composer, whose nodes can be merged
once more, and of sglang; both lie in one folder and share the id."""


_FORMATS = (
    r"\.db",
    r"(?:\.pt)?(?:\.trace)?\.json",
    r"(?:\.pt)?(?:\.trace)?\.(?:pftrace|perfetto-trace)",
    rf"(?P<tables>_{NAMES_OF_TABLES})\.csv",
)
_NAMED = [re.compile(rf"^(?P<stem>.+?){end}(?:\.gz)?$", re.IGNORECASE) for end in _FORMATS]
"""Formats in which a tool writes one and the same recording, the one that says most first."""


def other_formats(traces: Iterable[str]) -> set[str]:
    """The paths of traces to leave out, because the same recording lies beside them in a format that says more."""
    by_stem: dict[str, list[list[str]]] = {}
    for path in traces:
        for number, named in enumerate(_NAMED):
            if match := named.match(path):
                # `7_kernel_trace.csv` and so on are what `7_results.db` holds.
                stem = f"{match['stem']}_results" if "tables" in match.groupdict() else match["stem"]
                by_stem.setdefault(stem, [[] for _ in _NAMED])[number].append(path)
                break
    best = (next(i for i, paths in enumerate(formats) if paths) for formats in by_stem.values())
    return {
        path
        for first, formats in zip(best, by_stem.values(), strict=True)
        for paths in formats[first + 1 :]
        for path in paths
    }


def copies_of(files: Iterable[ListedFile]) -> set[str]:
    """The paths of the files to leave out."""
    paths = [file.path for file in files]
    return {*_exported_by_hand(paths), *_merged(paths)}


def _exported_by_hand(paths: Iterable[str]) -> Iterator[str]:
    """AORTA exports a window by hand beside the file that the handler writes of it."""
    exports = [path for path in paths if _AORTA.search(path) and trace_suffix(path)]
    handled = {posixpath.dirname(path) for path in exports if _HANDLER.search(path)}
    yield from (path for path in exports if posixpath.dirname(path) in handled and not _HANDLER.search(path))


def _merged(paths: Iterable[str]) -> Iterator[str]:
    """A merged file beside those that it was merged of: of ranks, which also keep the cycles apart, or nodes."""
    named = [(path, *posixpath.split(path)) for path in paths]
    for merge, single in _MERGES:
        singles = {(folder, match["id"]) for _, folder, name in named if (match := single.match(name))}
        yield from (
            path for path, folder, name in named if (m := merge.match(name)) and (folder, m["id"]) in singles
        )
