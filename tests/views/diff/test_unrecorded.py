"""Diff of recordings without the device: what needs its kernels is unknown, with the reason."""

from __future__ import annotations

import msgspec
import pytest

from tests.support.claims import repeat
from tests.support.diffs import compare, part, walk
from tests.support.traces import draw
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


ADD = "host cpu_op aten::add 850 50"
WAIT = "host cuda_runtime cudaDeviceSynchronize 900 60"
LONG_GEMM = "gpu0 kernel gemm 120 600 correlation=1 stream=7"
POLL = "host2 cuda_runtime cudaEventQuery 300 20"


def test_the_same_host_with_and_without_a_device_recorded_has_no_change_to_report() -> None:
    """Kernels hide host code on the one side, and runtime calls part its operators: neither is a change."""
    full, host_only = recorded(LAUNCH, HOST, LONG_GEMM, ADD, WAIT, POLL), recorded(HOST, ADD)
    for answer in (compare(full, host_only), compare(host_only, full)):
        assert answer.explanation == []
        bars = {bar.name: bar.verdict for bar in answer.waterfalls[0].bars}
        assert (bars["cpu_exec"], bars["other"], bars["runtime"]) == ("equal", "equal", "unknown")
        assert {row.host_self.verdict for row in answer.level.operators} == {"equal"}
        assert {row.host.verdict for row in answer.level.parts if row.status == "matched"} == {"equal"}
        notes = [plain(note) for note in answer.notes]
        assert any(note.startswith("Host self times include runtime calls, which the ") for note in notes)


@pytest.mark.parametrize("which", [0, 1], ids=["base", "candidate"])
def test_runtime_calls_are_unknown_where_only_one_side_recorded_any(which: int) -> None:
    sides = [recorded(LAUNCH, HOST, LONG_GEMM, WAIT)] * 2
    assert "runtime" not in compare(*sides).reasons
    sides[which] = recorded(HOST)
    reason = f"the {('base', 'candidate')[which]} recorded no runtime calls: it made none, or the profiler"
    assert plain(compare(*sides).reasons["runtime"]).startswith(reason)


@pytest.mark.parametrize("which", [0, 1], ids=["base", "candidate"])
def test_what_the_other_side_does_not_record_is_neither_added_nor_removed(which: int) -> None:
    sides = [recorded(LAUNCH, HOST, LONG_GEMM, WAIT, POLL)] * 2
    sides[which] = recorded(HOST)
    base, candidate = sides
    answer, calls = compare(base, candidate), (None, 1.0) if which == 0 else (1.0, None)
    (kernel,), (family,) = answer.kernels, answer.families
    assert (kernel.status, family.status) == ("not_recorded", "not_recorded")
    assert msgspec.structs.astuple(kernel.calls) == msgspec.structs.astuple(family.calls) == (*calls, None)
    statuses = {row.name: (row.status, row.host.verdict) for row in walk(base, candidate)}
    assert statuses["cudaLaunchKernel"] == statuses["cudaDeviceSynchronize"] == ("not_recorded", "unknown")
    assert {statuses[name][0] for name in ("gemm", "Other threads")} == {"not_recorded"}
    assert not {"added", "removed"} & {status for status, _ in statuses.values()}
    (operator,) = (row for row in part(base, candidate, "0").parts if row.name == "aten::mm")
    own_time = part(base, candidate, operator.path).parts[-1]
    assert (own_time.name, own_time.host.delta_ns) == ("self", 0)


def test_a_kernel_that_both_sides_could_have_recorded_is_removed() -> None:
    other = "gpu0 kernel relu 700 50 correlation=2 stream=7"
    answer = compare(recorded(LAUNCH, HOST, LONG_GEMM, other), recorded(LAUNCH, HOST, LONG_GEMM))
    assert {row.name: (row.status, row.calls.candidate) for row in answer.kernels} == {
        "gemm": ("matched", 1.0),
        "relu": ("removed", 0.0),
    }


def test_beside_a_file_without_a_host_operators_are_not_removed() -> None:
    device_only = draw("gpu0 kernel gemm 120 600 stream=7")
    answer = compare(recorded(LAUNCH, HOST, LONG_GEMM), device_only)
    (operator,) = answer.level.operators
    assert (operator.status, operator.calls.candidate) == ("not_recorded", None)
    assert {operator.host_self.verdict, operator.device_self.verdict} == {"unknown"}
    statuses = {row.name: row.status for row in walk(recorded(LAUNCH, HOST, LONG_GEMM), device_only)}
    assert not {"added", "removed"} & {*statuses.values()}


def test_copies_that_one_side_did_not_record_are_not_removed() -> None:
    copy = "gpu0 gpu_memcpy Memcpy_HtoD 750 40 correlation=3 stream=7"
    call = "host cuda_runtime cudaMemcpyAsync 300 5 correlation=3"
    answer = compare(recorded(LAUNCH, HOST, LONG_GEMM, call, copy), recorded(LAUNCH, HOST, LONG_GEMM, call))
    rows = {row.name: (row.status, row.calls.candidate, row.total.verdict) for row in answer.families}
    assert rows == {"memory": ("not_recorded", None, "unknown"), "matrix product": ("matched", 1.0, "equal")}
