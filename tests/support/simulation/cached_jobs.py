"""Jobs of thousands of ranks in a folder and a cache, as if their traces had been loaded."""

from __future__ import annotations

from pathlib import Path

from tests.support.page import draw_training
from tests.support.simulation.large_jobs import large_job
from tests.support.traces import read_bytes
from torch_tb_profiler.cache import Cache
from torch_tb_profiler.session.cache.entries import SUMMARY, FileSummary, encode_json, entry_key, result_name
from torch_tb_profiler.session.cache.packed import pack
from torch_tb_profiler.session.cache.similarity import NameSketch
from torch_tb_profiler.storage import FileId, open_location
from torch_tb_profiler.views._shared.job.members import RANK_DETAILS, RANK_SUMMARIES


def cache_job(folder: Path, cache: Cache, ranks: int, steps: int = 3) -> None:
    """Create a file per rank in `folder`, and in the cache what would be built from each; nothing is parsed.

    The trace of rank 0 is cached as well, because the page opens with it.
    """
    folder.mkdir(parents=True)
    place = open_location(str(folder.parent))
    for member in large_job(ranks, steps):
        path = f"{folder.name}/{member.worker}.pt.trace.json"
        (folder.parent / path).write_bytes(b"{}")
        key = entry_key(FileId(place.uri(path), place.entry(path).identity))
        summary = FileSummary(1000, member.rank, (), 1, {}, (), NameSketch((), ()))
        reductions = {RANK_SUMMARIES.cache_name: member.result, RANK_DETAILS.cache_name: member.details()}
        if member.rank == 0:
            assert cache.save_trace(key, read_bytes(draw_training(1)))
        for name, value in reductions.items():
            assert cache.save_reduced(key, result_name(name, None), pack(value))
        assert cache.save_json(key, SUMMARY, encode_json(summary))
