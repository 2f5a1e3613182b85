"""Each piece of advice on both sides of its threshold, and on both sides of each of its conditions."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.memory_events import memory
from tests.support.traces import draw
from torch_tb_profiler.analyses.overview.recommendations import Finding, findings
from torch_tb_profiler.model.trace import Trace

STEP = "host user_annotation ProfilerStep#1 0 100"


def fired(trace: Trace, id: str) -> Finding | None:
    """The finding of a rule, None if it did not fire."""
    return next((finding for finding in findings(trace) if finding.id == id), None)


def card(**properties: Any) -> list[dict[str, Any]]:
    return [{"id": 0, "name": "Card", **properties}]


# ---- shares of the step ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("wait", "fires"), [(5, False), (6, True)])
def test_waiting_for_data_counts_above_a_twentieth_of_the_step(wait: int, fires: bool) -> None:
    trace = draw(f"{STEP}\nhost cpu_op enumerate(DataLoader)#x.__next__ 0 {wait}")
    assert (fired(trace, "data_loading") is not None) == fires


@pytest.mark.parametrize(("talk", "fires"), [(10, False), (11, True)])
def test_exposed_communication_counts_above_a_tenth_of_the_step(talk: int, fires: bool) -> None:
    trace = draw(f"{STEP}\ngpu0 kernel ncclDevKernel_AllReduce 0 {talk} stream=20")
    assert (fired(trace, "communication") is not None) == fires


def test_steps_that_were_cut_off_do_not_count() -> None:
    trace = draw("""
    host  user_annotation  ProfilerStep#1                          0  100
    host  cuda_runtime     launch                                 10    5  correlation=1
    gpu0  kernel           k                                      20   60  correlation=1 stream=7
    host  user_annotation  ProfilerStep#2                        100  100
    host  user_annotation  enumerate(DataLoader)#x.__next__      100   90
    """)
    assert fired(trace, "data_loading") is None


def test_what_costs_most_comes_first() -> None:
    def ids(wait: int, talk: int) -> list[str]:
        return [
            finding.id
            for finding in findings(
                draw(f"""
                {STEP}
                host  user_annotation  enumerate(DataLoader)#x.__next__   0  {wait}
                gpu0  kernel           ncclDevKernel_AllReduce           60  {talk}  stream=20
                """)
            )
            if finding.gain_ns
        ]

    assert ids(wait=30, talk=20) == ["data_loading", "communication"]
    assert ids(wait=20, talk=30) == ["communication", "data_loading"]


@pytest.mark.parametrize(("busy", "fires"), [(50, False), (49, True)])
def test_a_device_is_idle_below_half_of_the_time(busy: int, fires: bool) -> None:
    finding = fired(draw(f"{STEP}\ngpu3 kernel k 0 {busy} stream=7"), "low_utilization")
    assert (finding is not None) == fires
    if finding:
        assert (finding.subject, finding.value) == ("3", 0.49)


# ---- memory ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "fires"),
    [
        ("20 GPU0 a 900 900 900", False),
        ("20 GPU0 a 901 901 901", True),
        ("20 GPU0 a 901 - -", False),  # without totals nobody knows what else is allocated
        ("20 CPU a 901 901 901", False),
    ],
)
def test_memory_is_nearly_full_above_nine_tenths(event: str, fires: bool) -> None:
    trace = draw(STEP, *memory(event), deviceProperties=card(totalGlobalMem=1000))
    assert (fired(trace, "memory_limit") is not None) == fires


def test_a_card_of_unknown_size_is_never_full() -> None:
    assert fired(draw(STEP, *memory("20 GPU0 a 901 901 901"), deviceProperties=card()), "memory_limit") is None


# ---- several devices ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("device", "fires"), [(0, False), (1, True)])
def test_data_parallel_matters_on_more_than_one_device(device: int, fires: bool) -> None:
    trace = draw(f"""
    host          cpu_op  DataParallel.forward   0  100
    gpu0          kernel  k                     10   80  stream=7
    gpu{device}   kernel  k                     90   10  stream=7
    """)
    assert (fired(trace, "data_parallel") is not None) == fires


DDP = """
host  cpu_op  DistributedDataParallel.forward   0  100
gpu0  kernel  gemm                             10   80  stream=7
"""


@pytest.mark.parametrize(
    ("backend", "call", "capability", "subject"),
    [
        ("gloo", "", (7, 0), "gloo"),
        ("mpi", "", (3, 5), "mpi"),
        ("", "host2 cpu_op gloo:all_reduce 20 10", (7, 0), "gloo"),
        ("gloo", "", (3, 4), None),  # too old for NCCL
        ("gloo", "", None, None),  # nobody says that it can
        ("", "", (7, 0), None),  # nobody says that it is slow
        ("nccl", "host2 cpu_op gloo:all_reduce 20 10", (7, 0), None),  # gloo beside NCCL is for small things
        ("gloo", "host2 user_annotation nccl:all_reduce 20 10", (7, 0), None),
    ],
)
def test_nccl_is_advised_to_cards_that_can_and_back_ends_that_are_slow(
    backend: str, call: str, capability: tuple[int, int] | None, subject: str | None
) -> None:
    known = {} if capability is None else {"computeMajor": capability[0], "computeMinor": capability[1]}
    trace = draw(DDP + call, distributedInfo={"backend": backend}, deviceProperties=card(**known))
    finding = fired(trace, "nccl_backend")
    assert (finding.subject if finding else None) == subject


def test_nccl_is_no_matter_without_ddp() -> None:
    trace = draw(
        DDP.replace("DistributedDataParallel", "Net"),
        distributedInfo={"backend": "gloo"},
        deviceProperties=card(computeMajor=8, computeMinor=0),
    )
    assert fired(trace, "nccl_backend") is None


# ---- Tensor Cores ---------------------------------------------------------------------------------------

PRODUCT = """
host  cpu_op        {operator}                       0  20
host  cuda_runtime  cudaLaunchKernel                 5   5  correlation=1
host  cpu_op        aten::add                       30  20
host  cuda_runtime  cudaLaunchKernel                35   5  correlation=2
gpu0  kernel        {kernel}                        50  {time}  correlation=1 stream=7
gpu0  kernel        vectorized_elementwise_kernel  150  {rest}  correlation=2 stream=7
"""


@pytest.mark.parametrize(
    ("operator", "kernel", "time", "rest", "major", "share"),
    [
        ("aten::mm", "ampere_sgemm", 60, 20, 7, 0.75),
        ("aten::mm", "ampere_sgemm", 60, 20, 6, None),  # before Volta there are none
        ("aten::mm", "ampere_s16816gemm", 60, 20, 8, None),  # they are used
        ("aten::sin", "sin_kernel", 60, 20, 8, None),  # nothing could use them
        ("aten::mm", "ampere_sgemm", 0, 0, 8, None),
    ],
)
def test_mixed_precision_is_advised_where_eligible_operators_use_no_tensor_core(
    operator: str, kernel: str, time: int, rest: int, major: int, share: float | None
) -> None:
    picture = PRODUCT.format(operator=operator, kernel=kernel, time=time, rest=rest)
    finding = fired(draw(picture, deviceProperties=card(computeMajor=major, computeMinor=0)), "mixed_precision")
    assert (finding.value if finding else None) == share


def test_work_without_an_operator_says_nothing_of_mixed_precision() -> None:
    trace = draw("gpu0 kernel ampere_sgemm 0 50 stream=7", deviceProperties=card(computeMajor=8, computeMinor=0))
    assert fired(trace, "mixed_precision") is None
