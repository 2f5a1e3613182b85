"""Small traces in which one name, size or time decides whether a rule applies."""

from __future__ import annotations

from typing import Any

from tests.analyses.overview.advice_traces import BACKWARD, card, steps, work
from tests.analyses.overview.kernel_calls import (
    H100,
    SM90,
    STEP,
    SYNC,
    Call,
    events,
    product,
)
from tests.model.work.operator_events import FLOAT, operator
from tests.support.memory_traces import memory
from tests.support.producers.composer import Batch, cycle
from tests.support.traces import event

Document = dict[str, Any]


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


def draw_waits_of_steps(*names: str) -> Document:
    """Return steps, each with two kernels and a gap between them that follows a call."""
    lines = [steps(len(names))]
    for number, name in enumerate(names):
        at = 10_000 * number
        lines += [
            work(at + 10, 4_990, at + 5, 2 * number + 1),
            f"host cuda_runtime {name} {at + 1_000} 4010",
            work(at + 6_000, 3_990, at + 5_990, 2 * number + 2),
        ]
    return {"traceEvents": [event(line) for line in "\n".join(lines).splitlines()]}


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


def draw_slow_launches(linked: int, names: int = 20) -> Document:
    """Draw 20 kernels, each after an operator of 1.9 ms, of so many names; `linked` of them have a launch."""
    lines = [steps(1, 40_000)]
    for i in range(20):
        at, call = 2_000 * i, i + 1 if i < linked else 999
        kernel = work(at + 1_910, 80, at + 1_900, i + 1).replace(f"correlation={i + 1} s", f"correlation={call} s")
        lines += [f"host cpu_op aten::op{i % names} {at} 1900", kernel]
    return {"traceEvents": [event(line) for line in "\n".join(lines).splitlines()]}


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


def draw_stage(wait: int, target: int = 0, marks: tuple[str, ...] = (BACKWARD,), *others: int) -> Document:
    """Draw a rank that receives 400 kB from rank 0 for `wait` us, sends to `target`, and reduces with all."""
    facts = "In msg nelems=100000 Out msg nelems=100000 dtype=Float"
    kernel = "ncclDevKernel_SendRecv"
    lines = [
        work(500, 1_500, 100, 1, "gemm"),
        WAITS,
        *marks,
        f"{work(2_000, wait, 200, 2, kernel, call=2)} Collective name=recv Src Rank=0 {facts}",
        f"{work(6_000, 100, 210, 3, kernel, call=2)} Collective name=send Dst Rank={target} {facts}",
    ]
    at = 6_500
    for number, time in enumerate(others, 10):
        lines.append(work(at, time, 220 + number, number, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", call=2))
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
    """Draw a copy of a millisecond that a kernel waits for, on a stream."""
    return picture(
        work(kernel, 4_000, 10, 1),
        "host cuda_runtime cudaMemcpyAsync 20 5 correlation=2",
        f"gpu0 gpu_memcpy Memcpy~HtoD~({memory_kind}~->~Device) 1000 1000 correlation=2 stream={stream}",
        WAITS,
    )


def offloaded(sent: int, to: str = "Pinned", update: int = 12) -> Document:
    """Draw a `serial_copy` of 4000 bytes after an update of parameters; first, one of `sent` bytes to the host."""
    content = serial_copy(to)
    content["traceEvents"][-2]["args"]["bytes"] = 4000
    sending = "gpu0 gpu_memcpy Memcpy~DtoH~(Device~->~Pinned) 8 2 stream=9 bytes={}"
    mark = f"host user_annotation Optimizer.step#DeepSpeedCPUAdam.step 6 {update}"
    return {**content, "traceEvents": [event(mark), event(sending.format(sent)), *content["traceEvents"]]}


def sent_gradients(size: int) -> Document:
    """Draw a `reading` of so many bytes, of which an optimizer on the host then sends back 4000."""
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
    """Draw an operator of 100 us for each parameter, and one of `others` us for all."""
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
    """Draw all-reduces of `us` one after the other, behind a kernel."""
    lines = [work(500, 1_500, 100, 1, "gemm"), WAITS, *marks]
    facts = f" In~msg~nelems={nelems} dtype={kind} Collective~name=allreduce".replace("~", " ")
    for number in range(count):
        name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
        lines.append(work(2_000 + us * number, us, 200 + number, 10 + number, name, call=1) + facts)
    return picture(*lines)


def beside_collectives(slow: int, grid: int = 64) -> Document:
    """Draw three kernels of 500 us alone, and three of `slow` us beside a collective, the last of size `grid`."""
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
    """Draw allocated and reserved bytes in steps of 100 us from 100 us on, and `before` them for a moment."""
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
