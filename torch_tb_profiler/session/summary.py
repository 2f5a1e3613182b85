"""What is kept of a file besides its columns, and under which names."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import msgspec

from torch_tb_profiler.cache import Cache
from torch_tb_profiler.model.health import Note
from torch_tb_profiler.view import RunView, TraceView
from torch_tb_profiler.views import all_tabs

SUMMARY = "summary"


@dataclass(frozen=True)
class FileSummary:
    """What the session knows of a file that has been read.

    rank         of the file itself, None if it does not say
    ranks        ranks of a merged file, empty for the usual one
    views        slugs of the views that were asked; a summary of other ones is out of date
    unavailable  view slug -> why this trace has nothing to show there
    health       all notes of the trace, those of the analyses included
    """

    events: int
    rank: int | None
    ranks: tuple[int, ...]
    views: tuple[str, ...]
    unavailable: dict[str, str]
    health: tuple[Note, ...]

    def severities(self) -> Counter[str]:
        return Counter(note.severity for note in self.health)


def result_name(slug: str, rank: int | None) -> str:
    """Name in the cache of what a view made of a file, or of one rank of a merged file."""
    return slug if rank is None else f"{slug}.rank{rank}"


def tab_slugs() -> tuple[str, ...]:
    return tuple(tab.slug for tab in all_tabs())


def load_summary(cache: Cache, key: str) -> FileSummary | None:
    """The summary kept with a cached trace, None if there is none that can be read."""
    content = cache.load_json(key, SUMMARY)
    if content is None:
        return None
    try:
        summary = msgspec.json.decode(content, type=FileSummary)
    except msgspec.DecodeError:
        return None
    return summary if summary.views == tab_slugs() else None


def fetch_results(cache: Cache, key: str, summary: FileSummary) -> None:
    """Bring from a shared cache what is kept beside a summary, so that a view of all ranks of a job need not
    wait for each of them."""
    for rank in summary.ranks or (None,):
        for tab in all_tabs():
            view = tab.view
            kept = isinstance(view, RunView) or (isinstance(view, TraceView) and view.eager)
            if kept and tab.slug not in summary.unavailable:
                cache.fetch_json(key, result_name(tab.slug, rank))
