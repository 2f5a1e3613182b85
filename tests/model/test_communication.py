"""Tests of communication operations, each from the calls and kernels that record it."""

from __future__ import annotations

import pytest

from tests.support.traces import draw
from torch_tb_profiler.analyses.shared.breakdown import breakdown
from torch_tb_profiler.model.communication.collectives import Collectives, TimingSource, collectives
from torch_tb_profiler.model.communication.events import (
    backend_from_kernel,
    collective_from_kernel,
    collective_from_name,
    host_communication_calls,
)
from torch_tb_profiler.model.communication.groups import format_ranks, parse_ranks, parse_recorded_ranks
from torch_tb_profiler.model.dtypes import bytes_per_element
from torch_tb_profiler.model.trace import ABSENT, NO_CODE

CALL = """
host  cpu_op           c10d::allreduce_     0  100
host  cpu_op           record_param_comms  10   80  {facts}
host  user_annotation  nccl:all_reduce     20   60
host  cuda_runtime     cudaLaunchKernel    30   10  correlation=7
gpu0  kernel           ncclDevKernel_AllReduce_Sum_f32_RING_LL 50 500 correlation=7 stream=20
"""
FACTS = (
    "Collective name=allreduce In msg nelems=1000 Out msg nelems=1000 dtype=BFloat16 Group size=4 "
    'Process Group Name="tp" Process Group Description="mesh_tp" Process Group Ranks="[0,2,4,6]" Seq=12'
)


def names(found: Collectives) -> list[str]:
    return [
        f"{found.names[backend] if backend >= 0 else '-'}:{found.names[what]}"
        for backend, what in zip(found.backend.tolist(), found.collective.tolist(), strict=True)
    ]


def test_nested_calls_and_their_kernel_are_one_operation() -> None:
    found = collectives(draw(CALL.format(facts=FACTS)))
    assert names(found) == ["nccl:all_reduce"]
    assert (found.event.tolist(), found.call.tolist()) == ([4], [0])
    assert (found.issue[0], found.start[0], found.end[0]) == (0, 50_000, 550_000)
    assert found.timing.tolist() == [TimingSource.DEVICE]
    assert (found.bytes_in[0], found.bytes_out[0], found.sequence[0]) == (2000, 2000, 12)
    group = found.groups[found.group[0]]
    assert (group.name, group.description, group.ranks, group.size, group.assumed) == (
        "tp",
        "mesh_tp",
        "0-6/2",
        4,
        False,
    )


def test_without_metadata_size_and_type_come_from_the_inputs() -> None:
    picture = CALL.format(facts="").replace(
        "20   60", '20   60  Input Dims=[[8,16],[4]] Input type=["double","float"]'
    )
    found = collectives(draw(picture))
    assert found.bytes_in.tolist() == [8 * 16 * 8 + 4 * 4]
    assert found.names[found.dtype[0]] == "double"
    assert found.sequence.tolist() == [ABSENT]


@pytest.mark.parametrize("facts", ["dtype=BFloat16", "In msg nelems=1000 Out msg nelems=1000"])
def test_an_incomplete_size_comes_from_the_inputs(facts: str) -> None:
    picture = CALL.format(facts=f"Collective name=allreduce {facts}").replace(
        "20   60", '20   60  Input Dims=[[8,16]] Input type=["double"]'
    )
    found = collectives(draw(picture))
    assert (found.bytes_in.tolist(), found.names[found.dtype[0]]) == ([8 * 16 * 8], "double")


def test_gloo_works_on_its_own_thread_and_the_issuing_call_does_not_count() -> None:
    found = collectives(
        draw("""
        host   cpu_op           c10d::allreduce_   0   10
        host2  user_annotation  gloo:all_reduce   15  200  Input Dims=[[10]] Input type=["float"]
        """)
    )
    assert names(found) == ["gloo:all_reduce"]
    assert (found.start[0], found.end[0], found.timing[0]) == (15_000, 215_000, TimingSource.HOST)
    assert found.bytes_in.tolist() == [40]


def test_the_call_counts_if_nothing_else_is_recorded() -> None:
    found = collectives(draw("host cpu_op c10d::reduce_scatter_tensor_ 0 10\nhost cpu_op c10d::wait_ 20 10"))
    assert names(found) == ["-:reduce_scatter"]


def test_the_peer_of_a_message_is_in_the_inputs_of_its_call() -> None:
    """gloo's own call begins in c10d's and ends later."""
    found = collectives(
        draw(
            """
            host  cpu_op           c10d::send   0  10  Concrete Inputs=["","","2","0"]
            host  user_annotation  gloo:send    5  50  Input Dims=[[1000]] Input type=["float"]
            """,
            distributedInfo={"rank": 1, "world_size": 3, "backend": "gloo"},
        )
    )
    assert names(found) == ["gloo:send"]
    assert (found.call[0], found.start[0], found.end[0]) == (0, 5_000, 55_000)
    assert (found.source[0], found.target[0], found.bytes_in[0]) == (1, 2, 4000)


def test_waits_are_not_operations() -> None:
    picture = (
        CALL.format(facts=FACTS) + "host cpu_op record_param_comms 200 50 Collective name=wait In msg nelems=0"
    )
    assert len(collectives(draw(picture))) == 1


def test_a_kernel_without_a_launching_call_is_an_operation() -> None:
    found = collectives(
        draw("""
        gpu0  kernel  ncclDevKernel_SendRecv(ncclDevComm*)        0   10  correlation=1 stream=20
        gpu0  kernel  void~vllm::cross_device_reduce_2stage<half>  20   10  correlation=2
        gpu0  kernel  ncclDevKernel_Generic(ncclDevComm*)         40   10  correlation=3 stream=20
        """)
    )
    assert names(found) == ["nccl:send_recv", "custom:all_reduce", "nccl:unknown"]
    assert found.call.tolist() == [NO_CODE] * 3
    assert (found.issue == ABSENT).all()


def test_a_kernel_may_have_its_own_metadata() -> None:
    found = collectives(draw(f"gpu0 kernel rcclGenericKernel 0 10 stream=4 {FACTS}"))
    assert names(found) == ["rccl:all_reduce"]
    assert found.bytes_in.tolist() == [2000]
    assert found.groups[0].ranks == "0-6/2"


def test_the_operations_of_a_batch_have_its_time() -> None:
    send = "Collective name=send In msg nelems=8 Out msg nelems=8 dtype=Byte Dst Rank=1"
    receive = send.replace("=send", "=recv").replace("Dst", "Src")
    found = collectives(
        draw(
            f"""
            host  cpu_op           record_param_comms  0  5  {send}
            host  cpu_op           record_param_comms 10  5  {receive}
            host  user_annotation  nccl:coalesced     20 20
            host  cuda_runtime     cudaLaunchKernel   25  5  correlation=7
            gpu0  kernel           ncclDevKernel_SendRecv 50 100 correlation=7 stream=20
            """,
            distributedInfo={"rank": 0, "world_size": 2},
        )
    )
    assert names(found) == ["nccl:send", "nccl:recv"]
    assert found.start.tolist() == [50_000] * 2 and found.end.tolist() == [150_000] * 2
    assert list(zip(found.source.tolist(), found.target.tolist(), strict=True)) == [(0, 1), (1, 0)]


def test_the_kernel_of_an_operation_may_be_missing() -> None:
    picture = (
        CALL.format(facts=FACTS) + "host cpu_op record_param_comms 700 50 " + FACTS.replace("Seq=12", "Seq=13")
    )
    found = collectives(draw(picture.replace("nccl:all_reduce     20", "nccl:all_reduce 20")))
    assert found.timing.tolist() == [TimingSource.DEVICE, TimingSource.NONE]
    assert found.start[1] == ABSENT and found.sequence.tolist() == [12, 13]


def test_an_uneven_all_to_all_counts_the_bytes_that_leave_the_rank() -> None:
    facts = 'Collective name=all_to_allv In msg nelems=100 dtype=Float Rank=1 In split size="[5,3,2]"'
    found = collectives(draw(CALL.format(facts=facts)))
    assert names(found) == ["nccl:all_to_allv"]
    assert found.egress_bytes.tolist() == [400 * 7 // 10]


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("allreduce", "all_reduce"), ("c10d::allreduce_", "all_reduce"), ("nccl:all_reduce", "all_reduce"),
        ("nccl:_all_gather_base", "all_gather"), ("allgather_into_tensor_coalesced", "all_gather"),
        ("_reduce_scatter_base", "reduce_scatter"), ("c10d::reduce_scatter_tensor_coalesced_", "reduce_scatter"),
        ("c10d::alltoall_base_", "all_to_all"), ("all_to_allv", "all_to_allv"), ("_broadcast_oop", "broadcast"),
        ("_reduce_oop", "reduce"), ("gather", "gather"), ("scatter", "scatter"), ("nccl:send 0->1", "send"),
        ("c10d::recv_any_source_", "recv"), ("nccl:all_reduce_barrier", "barrier"), ("barrier", "barrier"),
        ("wait", None), ("init", None), ("aten::mm", None),
    ],
)  # fmt: skip
def test_collectives_from_names(name: str, what: str | None) -> None:
    assert collective_from_name(name) == what


@pytest.mark.parametrize(
    ("kernel", "library", "what"),
    [
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "nccl", "all_reduce"),
        ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", "nccl", "reduce_scatter"),
        ("hccl::broadcast", "hccl", "broadcast"),
        ("oneccl_allgatherv_kernel", "oneccl", "all_gather"),
        ("multimem_all_reduce_kernel<bf16>", "custom", "all_reduce"),
        ("allreduce_fusion_kernel_oneshot_lamport", "custom", "all_reduce"),
    ],
)
def test_collectives_from_kernels(kernel: str, library: str, what: str) -> None:
    assert (backend_from_kernel(kernel), collective_from_kernel(kernel)) == (library, what)


@pytest.mark.parametrize(
    ("name", "width"),
    [
        ("float", 4), ("Float", 4), ("c10::Half", 2), ("BFloat16", 2), ("c10::BFloat16", 2), ("double", 8),
        ("long int", 8), ("Long", 8), ("unsigned char", 1), ("Byte", 1), ("signed char", 1), ("bool", 1),
        ("Bool", 1), ("Double", 8),
        ("Float8_e4m3fn", 1), ("c10::Float8_e5m2fnuz", 1), ("Float4_e2m1fn_x2", 1), ("ComplexFloat", 8),
        ("c10::complex<double>", 16), ("c10::complex<c10::Half>", 4), ("short int", 2), ("UInt16", 2),
        ("TensorList", None), ("", None), ("Scalar", None),
    ],
)  # fmt: skip
def test_bytes_per_element_of_every_type(name: str, width: int | None) -> None:
    assert bytes_per_element(name) == width


@pytest.mark.parametrize("ranks", [[0], [0, 1], [0, 1, 5], list(range(1024)), list(range(3, 90, 8)), [2, 4, 8]])
def test_ranks_are_formatted_in_short(ranks: list[int]) -> None:
    assert parse_ranks(format_ranks(ranks)) == ranks
    assert len(format_ranks(ranks)) < 10


@pytest.mark.parametrize(
    ("text", "size", "ranks"),
    [
        ("[0, 1]", None, "0,1"),
        ([4, 5, 6], None, "4-6"),
        ("[0, 1, ..., 7]", 8, "0-7"),
        ("[0, 8, ..., 56]", 8, "0-56/8"),
        ("[0, 1, ..., 7]", 5, None),
        ("[0, 1, ..., 7]", None, None),
        ("[]", 0, None),
        ("nonsense", 2, None),
        ("[0, -1]", 2, None),
        ("[0, 1, ..., 9999999999]", 10**10, None),
    ],
)
def test_ranks_are_parsed_as_traces_write_them(text: object, size: int | None, ranks: str | None) -> None:
    assert parse_recorded_ranks(text, size) == ranks


@pytest.mark.parametrize(("size", "known"), [(2**20, True), (2**20 + 1, False), (0, False)])
def test_a_group_with_too_many_ranks_has_an_unknown_size(size: int, known: bool) -> None:
    (group,) = collectives(
        draw(CALL.format(facts=f'Collective name=allreduce Process Group Name="tp" Group size={size}'))
    ).groups
    assert group.size == (size if known else None)


KERNEL_AND_CALLS = """
host   cpu_op           record_param_comms   0  50  Collective name=allreduce
host   user_annotation  nccl:all_reduce      5  40
host   cuda_runtime     cudaLaunchKernel    30  10  correlation=7
gpu0   kernel           ncclDevKernel_AllReduce_Sum_f32_RING_LL 50 500 correlation=7 stream=20
"""


def host_call_names(picture: str) -> list[str]:
    trace = draw(picture)
    return [trace.strings[code] for code in trace.events.name[host_communication_calls(trace)].tolist()]


@pytest.mark.parametrize(
    "call",
    [
        "host cpu_op record_param_comms 600 30 Collective~name=wait",
        "host cpu_op record_param_comms 600 30 Collective~name=init",
        "host cpu_op record_param_comms 600 30",
        "host cpu_op record_param_comms 600 30 Collective~name=allreduce",
        "host cpu_op c10d::allreduce_ 600 30",
        "host user_annotation nccl:all_reduce 600 30",
    ],
)
def test_a_call_without_a_kernel_is_not_communication_if_kernels_are_recorded(call: str) -> None:
    call = call.replace("Collective~name", "Collective name")
    assert host_call_names(KERNEL_AND_CALLS + call) == []
    trace = draw(KERNEL_AND_CALLS + call)
    assert breakdown(trace).times["communication"].sum() == 500_000
    assert len(host_call_names(call)) == 1  # no kernel shows the communication


def test_a_call_that_encloses_no_launch_is_not_communication() -> None:
    """The metadata is recorded before the launch, beside it."""
    assert (
        host_call_names(KERNEL_AND_CALLS.replace("record_param_comms   0  50", "record_param_comms   0   3")) == []
    )


def test_host_back_ends_count_beside_kernels() -> None:
    gloo = """
    host   cpu_op           c10d::send          600  20
    host   user_annotation  gloo:send           610  90
    host   cpu_op           c10d::allreduce_    800  20
    host2  user_annotation  gloo:all_reduce     810  90
    """
    assert host_call_names(KERNEL_AND_CALLS + gloo) == ["c10d::send", "gloo:send", "gloo:all_reduce"]
    assert breakdown(draw(KERNEL_AND_CALLS + gloo)).times["communication"].sum() == 500_000 + 100_000 + 90_000
