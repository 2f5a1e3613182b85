"""Worker processes that share the CPU with the training: more of them may slow it down, so none are advised."""

from __future__ import annotations

import pytest

from tests.support.traces import draw
from torch_tb_profiler.analyses.overview.advice import advice

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
