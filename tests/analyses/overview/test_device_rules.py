"""Advice about work of the devices: where it applies, where it does not, and where it nearly does."""

from __future__ import annotations

import pytest

from tests.analyses.overview.advice_traces import BACKWARD, card, get_advice, ids, share, steps, work
from tests.support.simulation.simulator import Host, Simulation, pipeline
from tests.support.traces import draw
from torch_tb_profiler.analyses.overview.communication_rules import find_contention
from torch_tb_profiler.model.trace import Trace

SYNC = "host cuda_runtime cudaDeviceSynchronize 300 9700"
"""The host waits for the device: only so does less work of the device shorten the step."""


# ---- gradients ------------------------------------------------------------------------------------------

DDP = "host cpu_op DistributedDataParallel.forward 0 100"
FSDP = "host user_annotation FullyShardedDataParallel.forward 0 100"


def talk(
    time: int, name: str = "ncclDevKernel_AllReduce_Sum_f32_RING_LL", number: int = 2, at: int = 2_000
) -> str:
    return (
        f"host cuda_runtime cudaLaunchKernel {200 + number} 2 correlation={number}\n"
        f"gpu0 kernel {name} {at} {time} correlation={number} stream=20"
    )


def draw_exchange(*lines: str) -> Trace:
    return draw("\n".join([steps(1), work(500, 1_500, 100, 1, "gemm"), SYNC, *lines]))


@pytest.mark.parametrize(("time", "gain"), [(200, 0.02), (199, None), (4_000, 0.4)])
def test_all_reduce_that_nothing_hides(time: int, gain: float | None) -> None:
    assert share(draw_exchange(DDP, BACKWARD, talk(time)), "communication") == gain


@pytest.mark.parametrize(
    "lines",
    [
        (DDP, talk(4_000)),  # inference
        (BACKWARD, talk(4_000)),  # who exchanges what is not known
        (DDP, BACKWARD, talk(1_000, at=800)),  # hidden behind a kernel
        (DDP, BACKWARD, talk(4_000, "ncclDevKernel_AllGather_RING_LL")),  # no gradients
        (FSDP, BACKWARD, talk(4_000)),  # not what FSDP waits for
    ],
)
def test_other_communication_is_no_matter_of_gradients(lines: tuple[str, ...]) -> None:
    assert get_advice(draw_exchange(*lines), "communication") is None


@pytest.mark.parametrize(
    "name", ["ncclDevKernel_AllGather_RING_LL", "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL"]
)
def test_fsdp_is_advised_to_prefetch_not_to_accumulate(name: str) -> None:
    found = get_advice(draw_exchange(FSDP, BACKWARD, talk(4_000, name)), "communication")
    assert found is not None and found.finding.case == "fsdp"


def test_less_communication_shortens_no_step_in_which_the_host_never_waits() -> None:
    trace = draw("\n".join([steps(1), work(500, 1_500, 100, 1, "gemm"), DDP, BACKWARD, talk(4_000)]))
    assert get_advice(trace, "communication") is None


# ---- waiting for a rank ---------------------------------------------------------------------------------


def collectives(*times: int, size: int | None = None) -> Trace:
    lines, at = [], 2_000
    for i, time in enumerate(times):
        row = talk(time, number=10 + i, at=at)
        if size is not None:
            row += f" In~msg~nelems={size} dtype=Float Collective~name=allreduce".replace("~", " ")
        lines.append(row)
        at += time
    return draw_exchange(DDP, BACKWARD, *lines)


def test_a_collective_far_longer_than_its_like_waits_for_a_rank() -> None:
    trace = collectives(100, 100, 100, 4_000)
    assert share(trace, "late_rank") == pytest.approx((4_000 - 300) / 10_000)
    assert get_advice(trace, "communication") is None


@pytest.mark.parametrize(
    "times",
    [
        (1_000, 1_000, 1_000, 1_000, 1_000),
        (900, 900, 900, 900, 2_700),  # three times the median
        (100, 100, 4_000),  # too few to tell what is usual
    ],
)
def test_collectives_like_each_other_are_no_waits(times: tuple[int, ...]) -> None:
    trace = collectives(*times)
    assert get_advice(trace, "late_rank") is None and get_advice(trace, "communication") is not None


@pytest.mark.parametrize(("longest", "advice"), [(900, "communication"), (910, "late_rank")])
def test_a_late_rank_is_the_advice_where_most_of_the_exposed_time_is_waiting(longest: int, advice: str) -> None:
    """Of 300 + 900 us that nothing hides, the 600 beyond three times the median wait: half."""
    found = ids(collectives(100, 100, 100, longest))
    assert {"communication", "late_rank"}.intersection(found) == {advice}


@pytest.mark.parametrize(
    ("elements", "late"), [(100, True), (1_800_000, True), (2_000_000, False), (4_000_000, False)]
)
def test_a_collective_that_its_size_does_not_explain_waits_for_a_rank(elements: int, late: bool) -> None:
    """16 MB in 4 ms are 4 GB/s; 400 B in 4 ms are a wait. So are 7.2 MB, as 1.9 ms are enough for these, less than
    half of the time; 8 MB need more than half."""
    trace = collectives(4_000, size=elements)
    assert (get_advice(trace, "late_rank") is not None) == late
    assert (get_advice(trace, "communication") is not None) == (not late)


# ---- several devices, other back ends -------------------------------------------------------------------

PARALLEL = "host cpu_op DataParallel.forward 0 9000\n"


@pytest.mark.parametrize(("device", "gain"), [(0, None), (1, 0.6)])
def test_data_parallel_matters_on_more_than_one_device(device: int, gain: float | None) -> None:
    trace = draw(f"{steps(1)}\n{PARALLEL}gpu0 kernel k 0 4000 stream=7\ngpu{device} kernel k 7000 3000 stream=7")
    assert share(trace, "data_parallel") == gain


def test_data_parallel_of_a_busy_device_costs_nothing() -> None:
    trace = draw(f"{steps(1)}\n{PARALLEL}gpu0 kernel k 0 9900 stream=7\ngpu1 kernel k 7000 3000 stream=7")
    assert get_advice(trace, "data_parallel") is None


@pytest.mark.parametrize(
    ("backend", "call", "capability", "subject"),
    [
        ("gloo", "gloo:all_reduce", (7, 0), "gloo"),
        ("", "gloo:all_reduce", (7, 0), "gloo"),
        ("mpi", "mpi:all_reduce", (3, 5), "mpi"),
        ("gloo", "gloo:all_reduce", (3, 4), None),  # too old for NCCL
        ("gloo", "gloo:all_reduce", None, None),  # nobody says that it can
        ("nccl", "gloo:all_reduce", (7, 0), None),  # gloo beside NCCL is for small things
        ("gloo", "nccl:all_reduce", (7, 0), None),
        ("gloo", "other", (7, 0), None),  # it takes no time
    ],
)
def test_nccl_is_advised_to_cards_that_can_and_back_ends_that_are_slow(
    backend: str, call: str, capability: tuple[int, int] | None, subject: str | None
) -> None:
    known = {} if capability is None else {"computeMajor": capability[0], "computeMinor": capability[1]}
    picture = f"{steps(1)}\n{DDP}\n{work(500, 1_500, 100, 1)}\nhost2 user_annotation {call} 3000 2000"
    trace = draw(picture, distributedInfo={"backend": backend}, deviceProperties=card(**known))
    found = get_advice(trace, "nccl_backend")
    assert (found.finding.subject if found else None) == subject


def test_nccl_is_no_matter_without_ddp() -> None:
    picture = f"{steps(1)}\n{work(500, 1_500, 100, 1)}\nhost2 user_annotation gloo:all_reduce 3000 2000"
    properties = card(computeMajor=8, computeMinor=0)
    assert get_advice(draw(picture, deviceProperties=properties), "nccl_backend") is None


# ---- Tensor Cores ---------------------------------------------------------------------------------------


def product(
    operator: str = "aten::mm",
    kernel: str = "volta_sgemm_128x64_nn",
    time: int = 5_000,
    types: str = '["float","float"]',
    sync: str = SYNC,
) -> str:
    return f"""
    {steps(1)}
    host  cpu_op        {operator}         90   40  Input~type={types}
    host  cuda_runtime  cudaLaunchKernel  100    5  correlation=1
    host  cpu_op        aten::add         190   40
    host  cuda_runtime  cudaLaunchKernel  200    5  correlation=2
    gpu0  kernel        {kernel}          300  {time}  correlation=1 stream=7
    gpu0  kernel        vectorized_elementwise_kernel  9000  900  correlation=2 stream=7
    {sync}
    """.replace("Input~type", "Input type")


def find_advice(picture: str, major: int = 8, minor: int = 0, name: str = "Card") -> str | None:
    trace = draw(picture, deviceProperties=[{"id": 0, "name": name, "computeMajor": major, "computeMinor": minor}])
    found = get_advice(trace, "mixed_precision")
    return None if found is None else found.finding.case


@pytest.mark.parametrize(
    ("major", "minor", "name", "case"),
    [
        (8, 0, "A100", "tf32"),
        (7, 0, "Tesla V100", "fp16"),  # it has no TF32
        (7, 5, "GeForce RTX 2080 Ti", "fp16"),  # nor this
        (7, 5, "GeForce GTX 1650", None),  # of the same generation, without Tensor Cores
        (7, 5, "GeForce MX450", None),
        (7, 5, "GeForce MX550", None),
        (6, 1, "GeForce GTX 1080", None),
    ],
)
def test_what_is_advised_is_what_the_card_can(major: int, minor: int, name: str, case: str | None) -> None:
    assert find_advice(product(), major, minor, name) == case


def test_a_card_that_is_not_described_gets_no_advice() -> None:
    assert get_advice(draw(product()), "mixed_precision") is None


@pytest.mark.parametrize(("other", "case"), [((8, 0), "tf32"), ((6, 1), None)])
def test_every_device_that_works_must_have_tensor_cores(other: tuple[int, int], case: str | None) -> None:
    second = {"id": 1, "name": "Card", "computeMajor": other[0], "computeMinor": other[1]}
    picture = f"{product()}\ngpu1 kernel k 310 10 stream=7"
    trace = draw(picture, deviceProperties=[*card(computeMajor=8, computeMinor=0), second])
    found = get_advice(trace, "mixed_precision")
    assert (found.finding.case if found else None) == case


@pytest.mark.parametrize(
    "picture",
    [
        product(kernel="ampere_s16816gemm_fp16_128x128"),  # they are used
        product("aten::sin", "sin_kernel"),  # nothing could use them
        product(time=150),  # a fiftieth of the step it is not
        product(types='["c10::Half","c10::Half"]'),  # no matter of precision
        product(types='["c10::BFloat16","c10::BFloat16"]'),
        product(types='["c10::Float8_e4m3fn","c10::Float8_e4m3fn"]'),
        product(types='["int","int"]'),
        product(types='["double","double"]'),
        product(sync=""),  # the host never waits for the device
        product(sync="host cuda_runtime cudaDeviceSynchronize 9910 90"),  # only for what comes later
    ],
)
def test_other_work_is_no_matter_of_precision(picture: str) -> None:
    assert find_advice(product()) == "tf32" and find_advice(picture) is None


def test_work_that_other_work_hides_gains_nothing() -> None:
    hidden = (
        "host cuda_runtime cudaLaunchKernel 210 5 correlation=3\ngpu0 kernel k 300 5000 correlation=3 stream=9"
    )
    assert find_advice(f"{product()}\n{hidden}") is None


# ---- layouts --------------------------------------------------------------------------------------------

LAYOUT = "layout_conversion"


def draw_conversion(
    name: str = "void~cudnn::ops::nchwToNhwcKernel<float>", time: int = 300, sync: str = SYNC
) -> Trace:
    return draw("\n".join([steps(1), work(500, 1_500, 100, 1, "gemm"), work(2_000, time, 110, 2, name), sync]))


@pytest.mark.parametrize(
    "name",
    [
        "void~cudnn::ops::nchwToNhwcKernel<float>",
        "void~cudnn::ops::nhwcToNchwKernel<__half>",
        "void~nchwToFoldedNhwcKernel<float>",
        "cudnn::nhwctonchw",
    ],
)
def test_conversions_between_layouts_gain_what_they_take(name: str) -> None:
    found = get_advice(draw_conversion(name), "layout_conversion")
    assert found is not None and found.gain_share == pytest.approx(0.03)
    assert found.gain is not None and (found.gain.measured_ns, found.gain.basis) == (300_000, "share")
    assert found.finding.value == 1


@pytest.mark.parametrize(
    "trace",
    [
        draw_conversion("sm80_xmma_fprop_implicit_gemm_f16f16_nhwc"),  # it convolves
        draw_conversion("void~cudnn::ops::nchwToNchwKernel<float>"),  # the layout stays
        draw_conversion("at::native::copy_kernel"),
        draw_conversion(time=199),  # a fiftieth of the step it is not
        draw_conversion(sync=""),  # the host never waits for the device
    ],
)
def test_other_kernels_are_no_matter_of_layout(trace: Trace) -> None:
    assert get_advice(trace, "layout_conversion") is None


@pytest.mark.parametrize(
    ("kernel", "share"),
    [
        ("void~at::native::batch_norm_backward_kernel<c10::BFloat16>", 0.03 + 0.15),
        ("sm80_xmma_wgrad_indexed_implicit_gemm_f16f16", 0.03 + 0.15),
        ("void~at::native::vectorized_layer_norm_kernel<float>", 0.03),  # images aren't normalized by it
        ("at::native::copy_kernel", 0.03),
    ],
)
def test_without_conversions_convolutions_and_batch_norms_may_be_faster_too(kernel: str, share: float) -> None:
    conversion = work(2_000, 300, 110, 2, "void~nchwToNhwcKernel<float>")
    found = get_advice(draw("\n".join([steps(1), work(500, 1_500, 100, 1, kernel), conversion, SYNC])), LAYOUT)
    assert found is not None and found.gain_share == pytest.approx(share)
    alone = draw("\n".join([steps(1), work(500, 1_500, 100, 1, kernel), SYNC]))
    assert get_advice(alone, LAYOUT) is None


def test_a_conversion_beside_other_work_gains_nothing() -> None:
    beside = (
        "host cuda_runtime cudaLaunchKernel 120 5 correlation=3\ngpu0 kernel k 1900 500 correlation=3 stream=9"
    )
    picture = [steps(1), work(500, 1_400, 100, 1), work(2_000, 300, 110, 2, "nchwToNhwcKernel"), beside, SYNC]
    assert get_advice(draw("\n".join(picture)), "layout_conversion") is None


# ---- contention -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("alone_on", "step", "found"),
    [
        ("gpu0", 9_000, 1),
        ("gpu1", 9_000, 0),
        ("gpu0", 90_000, 1),  # the kernels beside the collective take 1,800 us, 2% of the step
        ("gpu0", 90_001, 0),  # less, so that no faster ones are worth it
    ],
)
def test_kernels_are_slower_beside_collectives_if_the_same_device_runs_them_faster_alone(
    alone_on: str, step: int, found: int
) -> None:
    """Beside the collective kernels take 600 us, and 500 us alone: there, or on another device that is faster."""
    lines = [f"host user_annotation ProfilerStep#0 0 {step}"]
    for number in range(6):
        beside = number > 2
        device, time = ("gpu0", 600) if beside else (alone_on, 500)
        at = 1000 * (number + 1)
        lines.append(f"{device} kernel gemm {at} {time} grid=[64,1,1] stream=7")
    lines.append("gpu0 kernel ncclDevKernel_AllReduce_Sum_bf16_RING_LL 3990 3000 stream=9")
    assert len([*find_contention(draw("\n".join(lines)))]) == found


# ---- order ----------------------------------------------------------------------------------------------


def test_the_largest_gain_comes_first() -> None:
    trace = draw(
        f"{product(time=3_000)}\n{DDP.replace('100', '50')}\n{BACKWARD}\n{talk(4_000, number=7, at=4_000)}",
        deviceProperties=card(computeMajor=8, computeMinor=0),
    )
    assert ids(trace) == ["communication", "mixed_precision"]


def test_messages_between_stages_of_a_pipeline_are_no_collectives_that_wait() -> None:
    """Bubbles are how a pipeline works: no rank is late, and nothing else would be shorter."""
    text = "\n".join(
        talk(time, number=10 + i, at=2_000 + 1_000 * i) + " Collective~name=recv Src~Rank=0".replace("~", " ")
        for i, time in enumerate((100, 100, 100, 900))
    )
    messages = draw_exchange(DDP, BACKWARD, text)
    assert get_advice(messages, "late_rank") is None and get_advice(messages, "communication") is None
    as_collectives = draw_exchange(DDP, BACKWARD, text.replace("recv", "allreduce"))
    assert (
        get_advice(as_collectives, "late_rank") is not None
        or get_advice(as_collectives, "communication") is not None
    )


@pytest.mark.parametrize("stage", range(3))
def test_a_stage_of_a_pipeline_alone_hears_of_its_bubble_and_of_no_slow_collectives(stage: int) -> None:
    """Each of 3 stages computes 9.8 ms of its step; the bubble of 4 microbatches, 2 * 2.4 ms, is the rest."""
    programs = [[Host("Optimizer.step#AdamW.step", 20), *program] for program in pipeline(3, 4)]
    trace = Simulation(programs, syncs=True).run().trace(stage)
    found = get_advice(trace, "pipeline_waits")
    assert found is not None and found.gain is not None
    late = get_advice(trace, "late_rank")  # the bubble's rest, which ends in the all-reduce of the norm
    assert late is None or late.finding.case == "pipeline"
    rest = 0.0 if late is None or late.gain is None else late.gain.ns
    assert 0.9 * 4_800_000 <= found.gain.ns + rest <= 1.1 * 4_800_000


@pytest.mark.parametrize("recorded", [True, False])
def test_what_only_a_kernel_names_may_be_an_all_to_all(recorded: bool) -> None:
    fact = " Collective name=all_to_allv" if recorded else ""
    lines = [
        talk(time, "ncclDevKernel_SendRecv", 10 + i, 2_000 + 1_000 * i) + fact
        for i, time in enumerate((100, 100, 100, 950))
    ]
    found = get_advice(draw_exchange(DDP, BACKWARD, *lines), "late_rank")
    assert found is not None and found.finding.case == ("" if recorded else "messages")
