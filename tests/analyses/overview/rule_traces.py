"""Three traces for each case of each rule: where it applies, where it nearly does, and where it does not.

The near miss differs from the first one in a single value: a name, a size, a time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.analyses.overview.advice_traces import BACKWARD, card, steps, work
from tests.analyses.overview.kernel_calls import (
    ALIGN8,
    H100,
    SM90,
    STEP,
    SYNC,
    Call,
    attention,
    chain,
    events,
    product,
)
from tests.model.work.operator_events import FLOAT, operator
from tests.support.memory_traces import memory
from tests.support.producers.composer import Batch, cycle
from tests.support.traces import event

Document = dict[str, Any]


class Three(NamedTuple):
    applies: Document
    nearly: Document
    not_at_all: Document


def picture(*lines: str, more: list[dict[str, Any]] | None = None, **metadata: Any) -> Document:
    """Return a trace file of drawn lines, after a step of 10 ms, and of further events."""
    content = "\n".join((steps(1), *lines)).splitlines()
    return {"traceEvents": [*(event(line) for line in content if line.strip()), *(more or [])], **metadata}


END = work(9_000, 1_000, 8_900, 99)
BEGIN = work(10, 10, 2, 1)
ALL = work(100, 9_900, 50, 1)
"""Work of the device at the end of the step, at its start, and during all of it."""


ON_CPU = "host cpu_op aten::mm 5000 5000"
"""What a training on the CPU computes."""


def draw_loading(kind: str, wait: int, after: str = work(300, 9_700, 250, 1)) -> Document:
    return picture(after, f"host user_annotation enumerate(DataLoader)#_{kind}DataLoaderIter.__next__ 0 {wait}")


def trainer(wait: int) -> Document:
    """Draw two microseconds between two batches, of which so many are waits."""
    content = cycle([Batch(load=2, work=98)])
    (end,) = [each for each in content if each["name"] == "event/dataloader" and each["ph"] == "E"]
    end["ts"] += wait - 2
    return {"traceEvents": content}


def draw_start(duration: int, after: str = BEGIN) -> Document:
    return picture(after, work(40, 10, 35, 2), f"host cuda_runtime cudaFree 100 {duration}", END)


def draw_allocations(*names: str) -> Document:
    """Return four steps, each of which begins with a call."""
    lines = [steps(4)]
    for number, name in enumerate(names):
        at = 10_000 * number
        lines += [
            work(at + 9_000, 900, at + 8_900, number + 1),
            f"host cuda_runtime {name} {at + 100} 900",
        ]
    return {"traceEvents": [event(line) for line in "\n".join(lines).splitlines()]}


def draw_waits(launch: int, *wait: str) -> Document:
    """Return two kernels with a gap between them."""
    return picture(work(10, 4_990, 5, 1), *wait, work(6_000, 4_000, launch, 2))


ITEM = ("host cpu_op aten::item 1000 4010", "host cuda_runtime cudaStreamSynchronize 1005 4000")


def draw_long_wait(line: str) -> Document:
    """Return a wait of 8885 us."""
    return picture(BEGIN, line, END)


def draw_engine(line: str) -> Document:
    """Return two iterations of an inference engine, between whose work 4920 us pass on the device."""
    label = "host user_annotation execute_context_0(0)_generation_8(8)"
    lines = (f"{label} 0 100", work(10, 80, 5, 1), line, f"{label} 5000 100", work(5_010, 80, 5_005, 2))
    return {"traceEvents": [event(each) for each in "\n".join(lines).splitlines()]}


def beside(thread: str, time: int) -> Document:
    """Return a function of the program between operators, which no device follows."""
    return picture(
        "host cpu_op aten::mm 0 100",
        f"host cpu_op aten::add {100 + time} 8800",
        f"{thread} python_function data.py(4):~load 50 1500",
        "host python_function train.py(1):~main 0 10000",
    )


def draw_launches(linked: int, ahead: int = 6) -> Document:
    """Draw twenty kernels with gaps between them; `linked` of them have a launch."""
    lines = [work(300 * i, 100, max(0, 300 * i - ahead), i) for i in range(1, 21)]
    cut = [line.replace(f"correlation={i} stream", "correlation=999 stream") for i, line in enumerate(lines, 1)]
    return picture(*lines[:linked], *cut[linked:])


def draw_code(last: int, launch: int = 108) -> Document:
    """Draw ten kernels that wait for launches `launch` us after an operator begins, of 98 or 102 us in turns."""
    lines = []
    for i in range(10):
        at, length = 1_000 * i, (98, 102)[i % 2] if i < 9 else last
        lines += [f"host cpu_op my_hook {at + 2} {length}", work(at + 116, 884, at + launch, i + 1)]
    return picture(*lines)


def draw_eager_engine(linked: int, ahead: int = 6) -> Document:
    """Draw the launches of `draw_launches` in two iterations of an inference engine, ten in each."""
    content = draw_launches(linked, ahead)
    label = "host user_annotation execute_context_0(0)_generation_8(8)"
    labels = [event(f"{label} {start} 3000") for start in (250, 3_260)]
    is_step = [each["name"].startswith("ProfilerStep") for each in content["traceEvents"]]
    events = [each for each, step in zip(content["traceEvents"], is_step, strict=True) if not step]
    return {**content, "traceEvents": [*labels, *events]}


def draw_copies(memory_kind: str, kernel: int) -> Document:
    return picture(
        work(kernel, 4_000, 10, 1),
        "host cuda_runtime cudaMemcpyAsync 20 5 correlation=2",
        f"gpu0 gpu_memcpy Memcpy~HtoD~({memory_kind}~->~Device) 1000 1000 correlation=2 stream=8",
    )


def reading(memory_kind: str, copying: int = 1_000) -> Document:
    """Draw a copy to the host in `aten::copy_` that a call waits for, between two kernels."""
    return picture(
        work(10, 3_990, 5, 1),
        f"host cpu_op aten::copy_ 100 {copying + 4_000 - 100 + 5}",
        f"host cuda_runtime cudaMemcpyAsync 110 {copying + 4_000 - 110 + 3} correlation=3",
        f"gpu0 gpu_memcpy Memcpy~DtoH~(Device~->~{memory_kind}) 4000 {copying} correlation=3 stream=7",
        work(max(copying + 4_010, 6_000), 4_000 - max(0, copying - 1_990), max(copying + 4_006, 5_990), 2),
    )


def stalling(*marks: str) -> Document:
    """Draw steps of 10 ms, each after a wait of 12 ms or of 50 us in what has this name."""
    lines, at = [], 0
    for number, mark in enumerate(marks):
        name, _, wait = mark.partition(" ")
        length = 10_000 + int(wait or 50)
        lines += [
            f"host user_annotation ProfilerStep#{number} {at} {length}",
            f"host user_annotation {name} {at} {length - 10_000}",
            work(at + length - 9_990, 9_900, at + length - 9_995, number + 1),
        ]
        at += length
    content = "\n".join(lines).splitlines()
    return {"traceEvents": [event(line) for line in content]}


QUICK = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
STALL = f"{QUICK} 12000"


DDP = "host cpu_op DistributedDataParallel.forward 0 100"
FSDP = "host user_annotation FullyShardedDataParallel.forward 0 100"
WAITS = "host cuda_runtime cudaDeviceSynchronize 300 9700"
"""For the device: only so does less work of it shorten the step."""


def draw_collectives(marks: tuple[str, ...], *times: int, name: str = "AllReduce", at: int = 2_000) -> Document:
    """Draw collectives one after the other, behind a kernel."""
    lines = [work(500, 1_500, 100, 1, "gemm"), WAITS, *marks]
    for number, time in enumerate(times, 10):
        lines.append(work(at, time, 200 + number, number, f"ncclDevKernel_{name}_Sum_f32_RING_LL", call=2))
        at += time
    return picture(*lines)


def devices(second: int, mark: str = "DataParallel.forward") -> Document:
    return picture(
        f"host cpu_op {mark} 0 9000", "gpu0 kernel k 0 4000 stream=7", f"gpu{second} kernel k 7000 3000 stream=7"
    )


def backend(call: str, *marks: str) -> Document:
    return picture(
        *marks,
        work(500, 1_500, 100, 1),
        f"host2 user_annotation {call} 3000 2000",
        distributedInfo={"backend": "gloo"},
        deviceProperties=card(computeMajor=7, computeMinor=0),
    )


def draw_product(kind: str, major: int, kernel: str = "volta_sgemm_128x64_nn") -> Document:
    """Draw a matrix product; `kind` is the type of the second factor."""
    factors = operator("aten::mm", 90, 40, types=["float", kind])
    launched = [work(300, 5_000, 100, 1, kernel), work(9_000, 900, 200, 2), WAITS]
    properties = card(computeMajor=major, computeMinor=0)
    return picture(*launched, more=[factors], deviceProperties=properties)


def draw_casts(name: str) -> Document:
    return picture(work(500, 1_500, 100, 1, "conv"), work(2_000, 300, 110, 2, name), WAITS)


def draw_kernels(
    *calls: Call, more: list[dict[str, Any]] | None = None, major: int = 9, host: float = 0
) -> Document:
    return {
        "traceEvents": [STEP, SYNC, *(more or []), *events(*calls, host=host)],
        "deviceProperties": [{**H100, "computeMajor": major}],
    }


ALIGNED = product(SM90, 4096, time=150)
FUSED = operator("aten::_scaled_dot_product_attention_math", 5, 80)


def draw_optimizer(last: str, time: float, host: float, kernel: str = "vectorized") -> Document:
    """Draw eight calls in a step of an optimizer; return the name of the last of them."""
    mark = {**STEP, "name": "Optimizer.step#SGD.step", "ts": 5, "dur": 785}
    names = ["aten::add_"] * 7 + [last]
    calls = [(name, [[1000], [1000], []], FLOAT, kernel, time) for name in names]
    return draw_kernels(*calls, more=[mark], host=host)


def draw_full_memory(total: int, *lines: str, size: int = 1000) -> Document:
    return picture(*lines, more=memory(f"20 GPU0 a 901 {total} 901"), deviceProperties=card(totalGlobalMem=size))


def serial_copy(memory_kind: str, stream: int = 7, kernel: int = 5_000) -> Document:
    """A copy of a millisecond that a kernel waits for, on a stream."""
    return picture(
        work(kernel, 4_000, 10, 1),
        "host cuda_runtime cudaMemcpyAsync 20 5 correlation=2",
        f"gpu0 gpu_memcpy Memcpy~HtoD~({memory_kind}~->~Device) 1000 1000 correlation=2 stream={stream}",
        WAITS,
    )


def offloaded(sent: int, to: str = "Pinned", update: int = 12) -> Document:
    """`serial_copy` of 4000 bytes after an update of parameters, and a copy of `sent` bytes to the host before."""
    content = serial_copy(to)
    content["traceEvents"][-2]["args"]["bytes"] = 4000
    sending = "gpu0 gpu_memcpy Memcpy~DtoH~(Device~->~Pinned) 8 2 stream=9 bytes={}"
    mark = f"host user_annotation Optimizer.step#DeepSpeedCPUAdam.step 6 {update}"
    return {**content, "traceEvents": [event(mark), event(sending.format(sent)), *content["traceEvents"]]}


def sent_gradients(size: int) -> Document:
    """`reading` of so many bytes, of which an optimizer on the host then sends back 4000."""
    content = reading("Pageable")
    for each in content["traceEvents"]:
        if "DtoH" in each["name"]:
            each["args"]["bytes"] = size
    lines = (
        "host user_annotation Optimizer.step#DeepSpeedCPUAdam.step 5100 600",
        "host cuda_runtime cudaMemcpyAsync 5200 5 correlation=9",
        "gpu0 gpu_memcpy Memcpy~HtoD~(Pinned~->~Device) 5205 20 correlation=9 stream=9 bytes=4000",
    )
    return {**content, "traceEvents": [*content["traceEvents"], *map(event, lines)]}


def cpu_optimizer(parameters: int, name: str = "Optimizer.step#AdamW.step", others: int = 500) -> Document:
    """An operator of 100 us for each parameter, and one of `others` us for all."""
    calls = [f"host cpu_op aten::lerp_ {1000 + 100 * i} 90" for i in range(parameters)]
    return picture(
        f"host user_annotation {name} 900 3000",
        *calls,
        f"host cpu_op aten::sqrt 3000 {others}",
        "host cpu_op aten::mm 5000 4000",
    )


def reducing(
    count: int, nelems: int, kind: str = "BFloat16", marks: tuple[str, ...] = (BACKWARD,), us: int = 100
) -> Document:
    """All-reduces of `us` one after the other, behind a kernel."""
    lines = [work(500, 1_500, 100, 1, "gemm"), WAITS, *marks]
    facts = f" In~msg~nelems={nelems} dtype={kind} Collective~name=allreduce".replace("~", " ")
    for number in range(count):
        name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
        lines.append(work(2_000 + us * number, us, 200 + number, 10 + number, name, call=1) + facts)
    return picture(*lines)


def beside_collectives(slow: int, grid: int = 64) -> Document:
    """Three kernels of 500 us alone, three of `slow` us beside a collective, the last of size `grid`."""
    lines = [WAITS]
    for number in range(6):
        at = 1_000 * (number + 1)
        size = grid if number == 5 else 64
        lines.append(
            work(at, slow if number > 2 else 500, 100 + number, 10 + number, "gemm", 1) + f" grid=[{size},1,1]"
        )
    lines.append(
        work(3_990, 3_000, 200, 30, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL").replace("stream=7", "stream=9")
    )
    return picture(*lines)


def halved(kind: str, *marks: str) -> Document:
    return reducing(1, 8_000_000, kind, (DDP, BACKWARD, *marks), us=400)


def memory_in_steps(
    *totals: int,
    reserved: tuple[int, ...] = (1_200,) * 5,
    before: int = 0,
    size: int = 10_000,
    device: str = "GPU0",
) -> Document:
    """Allocated and reserved bytes in steps of 100 us from 100 us on, and `before` them for a moment."""
    marks = "\n".join(f"host user_annotation ProfilerStep#{i} {100 * (i + 1)} 100" for i in range(len(totals)))
    lines = (
        [f"10 {device} a {before} {before} {reserved[0]}", f"20 {device} a {-before} 0 {reserved[0]}"]
        if before
        else []
    )
    lines += [
        f"{100 * (i + 1) + 20} {device} b{i} 1 {total} {held}"
        for i, (total, held) in enumerate(zip(totals, reserved, strict=True))
    ]
    events = [event(line) for line in marks.splitlines()]
    return {
        "traceEvents": [*events, *memory("\n".join(lines))],
        "deviceProperties": card(totalGlobalMem=size),
    }


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
    ("blocking_copies", ""): Three(reading("Pageable"), reading("Pinned"), draw_waits(5_990, *ITEM)),
    ("blocking_copies", "offload"): Three(sent_gradients(4000), sent_gradients(4001), reading("Pageable")),
    ("host_code", "code"): Three(
        draw_long_wait("host user_annotation prepare 100 4443"),
        draw_long_wait("host user_annotation prepare 100 4442"),
        draw_long_wait("host2 user_annotation prepare 100 8000"),
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
    ("launch_bound", ""): Three(draw_launches(20), draw_launches(19), draw_launches(20, ahead=6_000)),
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
        draw_kernels(*attention(scores=1024), more=[FUSED]),
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
