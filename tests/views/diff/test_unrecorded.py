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


HOST = "host cpu_op aten::mm 5 200"


@pytest.mark.parametrize("which", [0, 1], ids=["base", "candidate"])
def test_beside_a_device_a_file_without_device_work_has_unknown_and_not_no_kernels(which: int) -> None:
    """Whether it ran on the CPU, or its profiler just didn't record the device, is the same file."""
    sides = [recorded(LAUNCH, GEMM, HOST), recorded(LAUNCH, GEMM, HOST)]
    sides[which] = recorded(HOST)
    answer, name = compare(*sides), ("base", "candidate")[which]
    reason = f"the {name} recorded no device work: it ran on the CPU, or the profiler didn't record the device"
    (kernel,), (family,), (operator,) = answer.kernels, answer.families, answer.level.operators
    changes = [kernel.total, family.total, operator.device_self, answer.devices[0].busy]
    changes += [answer.communication.total, answer.communication.exposed]
    for change in changes:
        assert (change.base_ns, change.candidate_ns, change.verdict) == (None, None, "unknown")
    bars = {bar.name: bar for bar in answer.waterfalls[0].bars}
    assert all(bars[each].verdict == "unknown" for each in ("kernel", "memcpy", "memset", "communication"))
    for field in ("kernel", "device", "busy", "communication"):
        assert plain(answer.reasons[field]) == reason
    notes = [plain(note) for note in answer.notes]
    assert f"{reason[0].upper()}{reason[1:]}." in notes and not any("Different hardware" in each for each in notes)
    assert not any("kernels" in plain(each) or "on the device" in plain(each) for each in answer.explanation)
    with pytest.raises(TraceError, match=f"the {name} recorded no device work"):
        run_checks(answer, None, Budget(exposed_communication=1000))


def test_collectives_of_one_side_are_unknown_where_the_other_recorded_no_device_work() -> None:
    nccl = "gpu0 kernel ncclDevKernel_AllReduce 200 80 correlation=2 stream=20"
    for other in (recorded(HOST), recorded(HOST, GLOO)):
        answer = compare(recorded(LAUNCH, GEMM, REDUCE, nccl), other)
        assert {each.total.verdict for each in answer.communication.collectives} == {"unknown"}
    answer = compare(recorded(LAUNCH, GEMM, GLOO), recorded(HOST, GLOO))
    assert [each.total.verdict for each in answer.communication.collectives] == ["equal"]
    assert (answer.communication.total.candidate_ns, answer.communication.exposed.candidate_ns) == (80_000, None)


def test_two_files_of_a_cpu_have_known_times_and_no_note_on_the_device() -> None:
    answer = compare(recorded(HOST), recorded(HOST))
    assert not {"kernel", "device", "busy"} & {*answer.reasons}
    assert not any("device work" in plain(note) for note in answer.notes)
