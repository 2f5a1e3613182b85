"""Jobs of thousands of ranks in a folder and a cache, as if their traces had been read."""

from __future__ import annotations

from pathlib import Path

from tests.support.page import training
from tests.support.simulation.large_jobs import large_job
from tests.support.traces import read_bytes
from torch_tb_profiler.cache import Cache
from torch_tb_profiler.session.kept.likeness import Sketch
from torch_tb_profiler.session.kept.packed import pack
from torch_tb_profiler.session.kept.structure import entry_key
from torch_tb_profiler.session.kept.summary import SUMMARY, FileSummary, encode, result_name
from torch_tb_profiler.storage import FileId, open_location
from torch_tb_profiler.views._shared.job.members import RANK_DETAILS, RANK_SUMMARIES


def keep_job(folder: Path, cache: Cache, ranks: int) -> None:
    """A file per rank in `folder`, and in the cache what is made of each: nothing is parsed.

    The trace of the first one is there, too: it is what a page opens with.
    """
    folder.mkdir(parents=True)
    place = open_location(str(folder.parent))
    for member in large_job(ranks):
        path = f"{folder.name}/{member.worker}.pt.trace.json"
        (folder.parent / path).write_bytes(b"{}")
        key = entry_key(FileId(place.uri(path), place.entry(path).identity))
        summary = FileSummary(1000, member.rank, (), 1, {}, (), Sketch((), ()))
        kept = {RANK_SUMMARIES.kept_as: member.result, RANK_DETAILS.kept_as: member.details()}
        if member.rank == 0:
            assert cache.save_trace(key, read_bytes(training(1)))
        for name, value in kept.items():
            assert cache.save_reduced(key, result_name(name, None), pack(value))
        assert cache.save_json(key, SUMMARY, encode(summary))
