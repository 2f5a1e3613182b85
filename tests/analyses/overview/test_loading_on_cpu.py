"""Worker processes that share the CPU with the training: more of them may slow it down, so none are advised."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from tests.support.traces import draw, read_bytes
from torch_tb_profiler.analyses.overview.advice import advice
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.overview.build import build

WAIT = "host user_annotation enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__ 0 4000"
STEP = "host user_annotation ProfilerStep#1 0 10000"


@pytest.mark.parametrize(
    ("work", "case"),
    [
        ("host cpu_op aten::mm 4000 6000", "same_cpu"),
        ("gpu0 kernel gemm 4000 6000 stream=7", "workers"),  # the CPU is free for workers
    ],
)
def test_who_computes_decides_what_is_advised(work: str, case: str) -> None:
    found = [
        each.finding for each in advice(draw("\n".join((STEP, WAIT, work)))) if each.finding.id == "data_loading"
    ]
    assert [each.case for each in found] == [case]


def test_the_fixed_sample_is_told_to_find_out_why_its_workers_are_late(samples: Path) -> None:
    """It computes on the CPU that its workers need: neither faster workers nor more of them are advised."""
    (path,) = (samples / "data_loading_fixed").iterdir()
    payload = build(read_bytes(gzip.decompress(path.read_bytes())), NoParams())
    (found,) = [each for each in payload.recommendations if each.id == "data_loading"]
    assert plain(found.title) == "Find out why the DataLoader workers are late"
    assert "so more of them may slow it down" in plain(found.text)
    sentences = " ".join(plain(each.title) + each.code for each in payload.recommendations) + plain(
        payload.headline
    )
    assert not re.search("num_workers=[1-9]|prefetch_factor|Speed up|faster", sentences)
