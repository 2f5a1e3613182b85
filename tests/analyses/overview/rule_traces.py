"""Three traces for each case of each rule: where it applies, where it nearly does, and where it does not.

The near miss differs from the first one in a single value: a name, a size, a time.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.analyses.overview.advice_traces import BACKWARD
from tests.analyses.overview.kernel_calls import (
    ALIGN8,
    attention,
    chain,
    product,
)
from tests.analyses.overview.rule_drawings import (
    ALIGNED,
    ALL,
    BEGIN,
    DDP,
    END,
    FSDP,
    FUSED,
    ITEM,
    ON_CPU,
    QUICK,
    STALL,
    Document,
    backend,
    beside,
    beside_collectives,
    cpu_optimizer,
    devices,
    draw_allocations,
    draw_casts,
    draw_code,
    draw_collectives,
    draw_copies,
    draw_eager_engine,
    draw_engine,
    draw_full_memory,
    draw_kernels,
    draw_launches,
    draw_loading,
    draw_long_wait,
    draw_optimizer,
    draw_product,
    draw_slow_launches,
    draw_stage,
    draw_start,
    draw_waits,
    draw_waits_of_steps,
    halved,
    memory_in_steps,
    offloaded,
    picture,
    reading,
    reducing,
    sent_gradients,
    serial_copy,
    stalling,
    trainer,
)
from tests.support.producers.composer import Batch, cycle


class Three(NamedTuple):
    applies: Document
    nearly: Document
    not_at_all: Document


RULES: dict[tuple[str, str], Three] = {
    ("data_loading", "process"): Three(
        draw_loading("SingleProcess", 200),
        draw_loading("SingleProcess", 199),
        draw_loading("SingleProcess", 4_000, ALL),
    ),
    ("data_loading", "workers"): Three(
        draw_loading("MultiProcessing", 200),
        draw_loading("MultiProcessing", 199),
        draw_loading("MultiProcessing", 4_000, ALL),
    ),
    ("data_loading", "same_cpu"): Three(
        draw_loading("MultiProcessing", 200, ON_CPU),
        draw_loading("MultiProcessing", 199, ON_CPU),
        draw_loading("MultiProcessing", 4_000, ALL),
    ),
    ("data_loading", "trainer"): Three(trainer(2), trainer(1), {"traceEvents": cycle([Batch(load=0, work=98)])}),
    ("data_loading", "stalls"): Three(
        stalling(STALL, QUICK, STALL, QUICK, QUICK, STALL, QUICK, QUICK, QUICK),
        stalling(STALL, QUICK, STALL, QUICK, QUICK, "save_checkpoint 12000", QUICK, QUICK, QUICK),
        stalling(STALL, *[QUICK] * 8),
    ),
    ("start_up", ""): Three(draw_start(1_000), draw_start(999), draw_start(1_000, ALL)),
    ("allocator", ""): Three(
        draw_allocations("cudaMalloc", "cudaMalloc", "cudaMalloc", "cudaEventQuery"),
        draw_allocations("cudaMalloc", "cudaMalloc", "cudaMallocAsync", "cudaEventQuery"),
        draw_allocations(*["cudaEventQuery"] * 4),
    ),
    ("synchronization", ""): Three(draw_waits(5_990, *ITEM), draw_waits(500, *ITEM), draw_waits(5_990)),
    ("synchronization", "some_steps"): Three(
        draw_waits_of_steps("cudaStreamSynchronize", *["cudaEventQuery"] * 3),
        draw_waits_of_steps(*["cudaStreamSynchronize"] * 2, *["cudaEventQuery"] * 2),
        draw_waits_of_steps(*["cudaEventQuery"] * 4),
    ),
    ("blocking_copies", ""): Three(reading("Pageable"), reading("Pinned"), draw_waits(5_990, *ITEM)),
    ("blocking_copies", "offload"): Three(sent_gradients(4000), sent_gradients(4001), reading("Pageable")),
    ("host_code", "code"): Three(
        draw_long_wait("host user_annotation prepare 100 4443"),
        draw_long_wait("host user_annotation prepare 100 4442"),
        draw_long_wait("host2 user_annotation prepare 100 8000"),
    ),
    ("host_code", "compile"): Three(
        draw_long_wait("host user_annotation _compile.compile_inner 100 4443"),
        draw_long_wait("host user_annotation _compile.compile_inner 100 4442"),
        draw_long_wait("host user_annotation TorchDynamo~Cache~Lookup 100 4443"),
    ),
    ("host_code", "engine"): Three(
        draw_engine("host user_annotation schedule 100 2460"),
        draw_engine("host user_annotation schedule 100 2459"),
        draw_engine("host2 user_annotation schedule 100 4900"),
    ),
    ("host_code", "alone"): Three(beside("host", 1_001), beside("host", 1_000), beside("host2", 4_000)),
    ("host_code", "operator"): Three(
        draw_long_wait("host cpu_op aten::sort 100 4443"),
        draw_long_wait("host cpu_op aten::sort 100 4442"),
        draw_long_wait("host2 cpu_op aten::sort 100 8000"),
    ),
    ("host_code", "call"): Three(
        draw_long_wait("host cuda_runtime hipMemset 100 4443"),
        draw_long_wait("host cuda_runtime hipMemset 100 4442"),
        draw_long_wait("host2 cuda_runtime hipMemset 100 8000"),
    ),
    ("short_code", ""): Three(draw_code(102), draw_code(98), draw_code(102, launch=50)),
    ("unrecorded_code", ""): Three(
        picture(BEGIN, "host cpu_op aten::mm 0 20", "host user_annotation read 30 20", END),
        picture(BEGIN, "host cpu_op aten::mm 0 20", "host python_function read 30 20", END),
        picture(BEGIN, "host cpu_op aten::mm 0 20", "host cpu_op aten::sort 30 8000", END),
    ),
    ("launch_bound", ""): Three(draw_launches(20), draw_launches(19), draw_launches(20, ahead=6_000)),
    ("launch_bound", "slow"): Three(
        draw_slow_launches(20), draw_slow_launches(19), draw_slow_launches(20, names=2)
    ),
    ("launch_bound", "engine"): Three(
        draw_eager_engine(20), draw_eager_engine(19), draw_eager_engine(20, ahead=200)
    ),
    ("pageable_copies", ""): Three(
        draw_copies("Pageable", 5_000), draw_copies("Pinned", 5_000), draw_copies("Pageable", 500)
    ),
    ("pageable_copies", "offload"): Three(
        offloaded(4000, "Pageable"), offloaded(4001, "Pageable"), offloaded(4000)
    ),
    ("pinned_copies", ""): Three(serial_copy("Pinned"), serial_copy("Pageable"), serial_copy("Pinned", stream=8)),
    ("exposed_copies", ""): Three(
        serial_copy("Pinned", stream=8),
        serial_copy("Pinned", stream=8, kernel=500),
        serial_copy("Pageable", stream=8),
    ),
    ("pinned_copies", "offload"): Three(offloaded(4000), offloaded(4001), offloaded(4000, "Pageable")),
    ("optimizer_on_cpu", "fused"): Three(
        cpu_optimizer(8), cpu_optimizer(8, "Optimizer.step#LBFGS.step"), cpu_optimizer(7)
    ),
    ("optimizer_on_cpu", "other"): Three(
        cpu_optimizer(8, "Optimizer.step#LBFGS.step"),
        cpu_optimizer(8),
        cpu_optimizer(7, "Optimizer.step#LBFGS.step"),
    ),
    ("small_collectives", "ddp"): Three(
        reducing(8, 1000, marks=(DDP, BACKWARD)),
        reducing(8, 1000, marks=(DDP.replace("Distributed", ""), BACKWARD)),
        reducing(7, 1000, marks=(DDP, BACKWARD)),
    ),
    ("small_collectives", "loop"): Three(
        reducing(8, 1000), reducing(8, 1000, marks=(BACKWARD.replace("evaluate", "~"),)), reducing(8, 10_000_000)
    ),
    ("contention", ""): Three(beside_collectives(600), beside_collectives(600, grid=65), beside_collectives(500)),
    ("communication", "ddp_16_bit"): Three(halved("BFloat16"), halved("Float"), reducing(1, 8_000_000, us=400)),
    ("communication", "ddp"): Three(
        draw_collectives((DDP, BACKWARD), 200),
        draw_collectives((DDP, BACKWARD), 199),
        draw_collectives((DDP,), 4_000),
    ),
    ("communication", "fsdp"): Three(
        draw_collectives((FSDP, BACKWARD), 4_000, name="AllGather"),
        draw_collectives((FSDP, BACKWARD), 4_000, name="AllReduce"),
        draw_collectives((FSDP, BACKWARD), 1_000, name="AllGather", at=800),
    ),
    ("late_rank", ""): Three(
        draw_collectives((DDP, BACKWARD), 100, 100, 100, 910),
        draw_collectives((DDP, BACKWARD), 100, 100, 100, 900),
        draw_collectives((DDP, BACKWARD), 1_000, 1_000, 1_000, 1_000),
    ),
    ("late_rank", "messages"): Three(
        draw_collectives((DDP, BACKWARD), 100, 100, 100, 910, name="SendRecv"),
        draw_collectives((DDP, BACKWARD), 100, 100, 100, 900, name="SendRecv"),
        draw_collectives((DDP, BACKWARD), 100, 100, 100, 910),
    ),
    ("late_rank", "pipeline"): Three(
        draw_stage(100, 0, (BACKWARD,), 100, 100, 100, 910),
        draw_stage(100, 2, (BACKWARD,), 100, 100, 100, 910),
        draw_stage(100, 0, (), 100, 100, 100, 910),
    ),
    ("pipeline_waits", ""): Three(draw_stage(400), draw_stage(399), draw_stage(900, marks=())),
    ("data_parallel", ""): Three(devices(1), devices(1, "DistributedDataParallel.forward"), devices(0)),
    ("nccl_backend", ""): Three(
        backend("gloo:all_reduce", DDP), backend("nccl:all_reduce", DDP), backend("gloo:all_reduce")
    ),
    ("mixed_precision", "fp16"): Three(
        draw_product("float", 7),
        draw_product("c10::Half", 7),
        draw_product("float", 7, "volta_h884gemm_128x64_nn"),
    ),
    ("mixed_precision", "tf32"): Three(
        draw_product("float", 8),
        draw_product("c10::Half", 8),
        draw_product("float", 8, "ampere_s1688gemm_128x64_nn"),
    ),
    ("layout_conversion", ""): Three(
        draw_casts("cudnn::ops::nchwToNhwcKernel"), draw_casts("cudnn::ops::nchwToNchwKernel"), draw_casts("copy")
    ),
    ("slow_products", "alignment"): Three(
        draw_kernels(product(n=4099), ALIGNED), draw_kernels(product(n=4096), ALIGNED), draw_kernels(ALIGNED)
    ),
    ("slow_products", "older"): Three(
        draw_kernels(product(ALIGN8, 4096)), draw_kernels(product(ALIGN8, 4096), major=8), draw_kernels(ALIGNED)
    ),
    ("unfused_attention", "operators"): Three(
        draw_kernels(*attention()), draw_kernels(*attention(scores=1024)), draw_kernels(*attention()[:1])
    ),
    ("unfused_attention", "fallback"): Three(
        draw_kernels(*attention(), more=[FUSED]),
        draw_kernels(*attention(), more=[{**FUSED, "name": "aten::scaled_dot_product_attention"}]),
        draw_kernels(*attention()),
    ),
    ("elementwise_chains", ""): Three(
        draw_kernels(*chain("add", "mul", "relu")),
        draw_kernels(*chain("add", "mul", "relu", sizes=(1000, 1000, 999))),
        draw_kernels(ALIGNED, ALIGNED, ALIGNED),
    ),
    ("optimizer_loop", "launches"): Three(
        draw_optimizer("aten::add_", 2, 100),
        draw_optimizer("aten::mul_", 2, 100),
        draw_optimizer("aten::add_", 2, 100, "multi_tensor_apply_kernel<Adam>"),
    ),
    ("optimizer_loop", "kernels"): Three(
        draw_optimizer("aten::add_", 900, 0),
        draw_optimizer("aten::mul_", 900, 0),
        draw_optimizer("aten::add_", 900, 0, "multi_tensor_apply_kernel<Adam>"),
    ),
    ("memory_limit", "training"): Three(
        draw_full_memory(901, BACKWARD),
        draw_full_memory(900, BACKWARD),
        draw_full_memory(901, BACKWARD, size=2000),
    ),
    ("memory_peak", ""): Three(
        memory_in_steps(*[1_000] * 5, before=5_000),
        memory_in_steps(*[1_000] * 5, before=5_000, size=10_001),
        memory_in_steps(*[4_900] * 5, before=5_000),
    ),
    ("memory_growth", ""): Three(
        memory_in_steps(1_000, 1_003, 1_006, 1_009, 1_011),
        memory_in_steps(1_000, 1_003, 1_006, 1_009, 1_010),
        memory_in_steps(1_000, 1_040, 1_030, 1_020, 1_010),
    ),
    ("reserved_growth", "sizes"): Three(
        memory_in_steps(*[1_000] * 5, reserved=(1_200, 1_203, 1_206, 1_209, 1_213), device="XPU0"),
        memory_in_steps(*[1_000] * 5, reserved=(1_200, 1_203, 1_206, 1_209, 1_212), device="XPU0"),
        memory_in_steps(1_000, 1_003, 1_006, 1_009, 1_013, reserved=(1_200, 1_203, 1_206, 1_209, 1_213)),
    ),
    ("reserved_growth", "segments"): Three(
        memory_in_steps(*[1_000] * 5, reserved=(1_200, 1_203, 1_206, 1_209, 1_213)),
        memory_in_steps(*[1_000] * 5, reserved=(1_200, 1_203, 1_206, 1_209, 1_212)),
        memory_in_steps(1_000, 1_003, 1_006, 1_009, 1_013, reserved=(1_200, 1_203, 1_206, 1_209, 1_213)),
    ),
    ("memory_limit", "inference"): Three(
        draw_full_memory(901), draw_full_memory(900), draw_full_memory(901, size=2000)
    ),
}
