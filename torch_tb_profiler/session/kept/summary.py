"""What is kept of a file besides its columns, and under which names."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from hashlib import sha256

import msgspec

from torch_tb_profiler.cache import Cache
from torch_tb_profiler.model.health import HealthNote
from torch_tb_profiler.session.kept.likeness import Sketch

SUMMARY = "summary"


@dataclass(frozen=True)
class FileSummary:
    """What the session knows of a file that has been read.

    rank         of the file itself, None if it does not say
    ranks        ranks of a merged file, empty for the usual one
    recordings   how many lie in the file, one after the other
    unavailable  view slug -> why this trace has nothing to show there
    health       all notes of the trace, those of the analyses included
    sketch       what is compared to find the run most like another
    """

    events: int
    rank: int | None
    ranks: tuple[int, ...]
    recordings: int
    unavailable: dict[str, str]
    health: tuple[HealthNote, ...]
    sketch: Sketch

    @property
    def parts(self) -> tuple[int, ...]:
        """The numbers of the file's parts (`model.ranks.split`), empty if it holds one trace."""
        return tuple(range(self.recordings)) if self.recordings > 1 else self.ranks

    def severities(self) -> Counter[str]:
        return Counter(note.severity for note in self.health)


def result_name(slug: str, part: int | None) -> str:
    """Name in the cache of what a view made of a file, or of one part of it."""
    name = slug.replace("/", ".")
    return name if part is None else f"{name}.part{part}"


def asked_name(slug: str, part: int | None, params: msgspec.Struct) -> str:
    """Name in the cache of what a view answers with these parameters."""
    digest = sha256(msgspec.json.encode(params)).hexdigest()[:16]
    return f"{result_name(slug, part)}.{digest}"


def encode(value: object) -> bytes:
    """JSON of a payload; NaN and infinity become null."""
    return msgspec.json.encode(value)


def load_summary(cache: Cache, key: str) -> FileSummary | None:
    """The summary kept with a cached trace, None if there is none that can be read."""
    content = cache.load_json(key, SUMMARY)
    if content is None:
        return None
    try:
        return msgspec.json.decode(content, type=FileSummary)
    except msgspec.DecodeError:
        return None


def fetch_results(cache: Cache, key: str, summary: FileSummary) -> None:
    """Bring from a shared cache what is kept beside a summary, so that a view of all ranks of a job need not
    wait for each of them."""
    from torch_tb_profiler.view import RunView
    from torch_tb_profiler.views import all_tabs

    for part in summary.parts or (None,):
        for tab in all_tabs():
            if tab.slug in summary.unavailable:
                continue
            for view in tab.made_when_parsed:
                cache.fetch_json(key, result_name(view.slug, part))
            if isinstance(tab.view, RunView):
                cache.fetch_reduced(key, result_name(tab.view.reduction.kept_as, part))
