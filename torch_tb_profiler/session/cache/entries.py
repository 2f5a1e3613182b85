"""The key of a file's cache entry, and the names and the contents of what is stored next to its trace."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

import msgspec
from isal.isal_zlib import crc32

from torch_tb_profiler import views
from torch_tb_profiler.base.threadsafe import threadsafe
from torch_tb_profiler.cache import Cache, cache_key, hash_content
from torch_tb_profiler.model.hardware_catalog import EMPTY_CATALOG, HardwareCatalog
from torch_tb_profiler.model.health import HealthNote
from torch_tb_profiler.model.origin_records import PlacedIterations
from torch_tb_profiler.session.cache.similarity import NameSketch
from torch_tb_profiler.storage import FileId

SUMMARY = "summary"
"""Name of the stored `FileSummary`."""

PREPARED = "prepared"
"""Name of what says that the first answers of all tabs are stored."""

SUMMARIES = "summaries"
"""Name of the stored summaries of many files."""

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(views.__file__)))

_WITHOUT_RESULTS = ("api", "cli", "http", "mcp", "report", "static", "training")
"""Folders of the package that no entry depends on: surfaces, which only ask sessions."""


# ---- key ------------------------------------------------------------------------------------------------


def entry_key(file: FileId, catalog: HardwareCatalog = EMPTY_CATALOG) -> str:
    """Return the key of a file's cache entry, as this program version writes it with its views.

    catalog  the user's devices: figures that depend on other devices are stored in another entry
    """
    return cache_key(file, entry_contents(catalog))


def entry_contents(catalog: HardwareCatalog = EMPTY_CATALOG) -> str:
    """Return what `entry_key` says about the contents of all entries with figures of these devices."""
    devices = msgspec.json.encode(catalog, order="deterministic").decode()
    return f"{program_digest(views.SLUGS)}; {devices}"


def preview_key(key: str) -> str:
    """Return the key of what can be shown of a large file while the rest is read."""
    return f"{key}.preview"


def job_key(content: object) -> str:
    """Return the key of an answer about a whole job, from all that it is built from (with keys of its files)."""
    return hash_content(msgspec.json.encode(content))


@lru_cache(maxsize=1)
def program_digest(slugs: tuple[str, ...]) -> str:
    """Return a text that identifies everything that an entry holds: the columns, the summary, and the results.

    The source code of the program, without its surfaces, determines all of it, including how each field is
    computed. Reading it takes 2 ms; inspecting the types would import all views before the first byte of a trace
    is read. A checksum per file tells versions apart, and is quicker than a hash against forgery.
    """
    files = []
    for name, path in sorted(_source_files(_PACKAGE)):
        with open(path, "rb", buffering=0) as file:
            text = file.readall()
        files.append(f"{name}\0{len(text)}\0{crc32(text)}\0")
    return f"{' '.join(slugs)}; {hash_content(''.join(files).encode())}"


def _source_files(folder: str, inside: str = "") -> Iterator[tuple[str, str]]:
    """Yield the name in the package and the path of each source file, but for those of surfaces."""
    with os.scandir(folder) as listing:
        for entry in listing:
            name = f"{inside}{entry.name}"
            if entry.name.endswith(".py"):
                yield name, entry.path
            elif entry.name != "__pycache__" and name not in _WITHOUT_RESULTS and entry.is_dir():
                yield from _source_files(entry.path, f"{name}/")


# ---- names ----------------------------------------------------------------------------------------------


def result_name(slug: str, part: int | None) -> str:
    """Return the name of a view's result for a file, or for one part of it."""
    name = slug.replace("/", ".")
    return name if part is None else f"{name}.part{part}"


def answer_name(slug: str, part: int | None, params: msgspec.Struct) -> str:
    """Return the name of a view's answer for `params`."""
    return f"{result_name(slug, part)}.{hash_content(msgspec.json.encode(params))[:16]}"


def encode_json(value: object) -> bytes:
    """Encode a payload as JSON; NaN and infinity become null."""
    return msgspec.json.encode(value)


# ---- contents -------------------------------------------------------------------------------------------


class FileSummary(msgspec.Struct, frozen=True):
    """What the session knows about a file that has been read.

    rank         of the file itself, None if it doesn't say
    ranks        ranks of a merged file, otherwise empty
    recordings   number of recordings that the file holds, one after the other
    unavailable  view slug -> why this trace has nothing to show there
    health       all notes on the trace, including those of the analyses
    sketch       compared to find the run that is most similar to another
    iterations   iterations of metrics in another file that were joined with it, if any
    step_noun    what a step is in a sentence: "step", or "iteration" of an inference engine
    """

    events: int
    rank: int | None
    ranks: tuple[int, ...]
    recordings: int
    unavailable: dict[str, str]
    health: tuple[HealthNote, ...]
    sketch: NameSketch
    iterations: PlacedIterations | None = None
    step_noun: str = "step"

    @property
    def parts(self) -> tuple[int, ...]:
        """Return the numbers of the file's parts (`model.ranks.split_trace`), empty if it holds one trace."""
        return tuple(range(self.recordings)) if self.recordings > 1 else self.ranks

    def severities(self) -> Counter[str]:
        """Count the notes by severity."""
        return Counter(note.severity for note in self.health)


def load_summary(cache: Cache, key: str) -> FileSummary | None:
    """Load the summary of a cached trace; return None if there is none that can be read."""
    content = cache.load_json(key, SUMMARY)
    if content is None:
        return None
    try:
        return msgspec.json.decode(content, type=threadsafe(FileSummary))
    except msgspec.DecodeError:
        return None


def load_summaries(cache: Cache, keys: Sequence[str]) -> list[FileSummary] | None:
    """Load the summaries of many traces, which `save_summaries` has put into one file, or None."""
    content = cache.load_json(job_key(keys), SUMMARIES)
    if content is None:
        return None
    try:
        return msgspec.json.decode(content, type=threadsafe(list[FileSummary]))
    except msgspec.DecodeError:
        return None


def save_summaries(cache: Cache, keys: Sequence[str], summaries: Sequence[FileSummary]) -> None:
    """Keep the summaries of many traces in one file: thousands of files take ten times as long to read."""
    cache.save_json(job_key(keys), SUMMARIES, encode_json(summaries))


def fetch_results(cache: Cache, key: str, summary: FileSummary) -> None:
    """Copy the results of a file from a shared cache, so that a view of all ranks needn't wait for each."""
    for part in summary.parts or (None,):
        for tab in views.all_tabs():
            if tab.slug in summary.unavailable:
                continue
            for view in tab.views_built_on_load:
                cache.fetch_json(key, result_name(view.slug, part))
            for reduction in tab.reductions_on_load:
                cache.fetch_reduced(key, result_name(reduction.cache_name, part))
