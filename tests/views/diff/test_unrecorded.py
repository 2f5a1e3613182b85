"""Diff of recordings without the device: what needs its kernels is unknown, with the reason."""

from __future__ import annotations

import pytest

from tests.support.claims import repeat
from tests.support.diffs import compare
from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.diff.gate import Budget, run_checks

LAUNCH = "host cuda_runtime cudaLaunchKernel 10 5 correlation=1"
REDUCE = """
host user_annotation nccl:all_reduce 200 80
host cuda_runtime cudaLaunchKernel 210 5 correlation=2
"""
GLOO = "host user_annotation gloo:all_reduce 200 80"
GEMM = "gpu0 kernel gemm 30 100 correlation=1 stream=7"


def recorded(*lines: str) -> Trace:
    return repeat(*lines, length=1000)


def test_exposed_communication_is_unknown_where_kernels_were_not_recorded() -> None:
    answer = compare(recorded(LAUNCH, REDUCE), recorded(LAUNCH, REDUCE))
    for change in (answer.communication.total, answer.communication.exposed):
        assert (change.base_ns, change.candidate_ns, change.verdict) == (None, None, "unknown")
    assert plain(answer.reasons["communication"]).startswith("kernels were launched, but")
    with pytest.raises(TraceError, match="exposed communication: kernels were launched, but"):
        run_checks(answer, None, Budget(exposed_communication=1000))


def test_a_host_that_communicates_does_so_for_a_known_time_but_beside_what_is_unknown() -> None:
    answer = compare(recorded(LAUNCH, GLOO), recorded(LAUNCH, GLOO))
    assert answer.communication.total.base_ns == 80_000
    assert answer.communication.exposed.base_ns is None
    assert plain(answer.reasons["communication"]).startswith("kernels were launched, but")


def test_communication_is_known_where_kernels_were_recorded() -> None:
    answer = compare(recorded(LAUNCH, GEMM, GLOO), recorded(LAUNCH, GEMM, GLOO))
    assert answer.communication.exposed.base_ns == 80_000
    assert "communication" not in answer.reasons
