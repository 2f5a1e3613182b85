"""Three traces for each case of each rule: where it applies, where it nearly does, and where it does not.

The near miss differs from the first one in a single value: a name, a size, a time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.analyses.overview.drawn import BACKWARD, card, steps, work
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
    drawn = "\n".join((steps(1), *lines)).splitlines()
    return {"traceEvents": [*(event(line) for line in drawn if line.strip()), *(more or [])], **metadata}


END = work(9_000, 1_000, 8_900, 99)
BEGIN = work(10, 10, 2, 1)
ALL = work(100, 9_900, 50, 1)
"""Work of the device at the end of the step, at its begin, and during all of it."""


ON_CPU = "host cpu_op aten::mm 5000 5000"
"""What a training on the CPU computes."""


def loading(kind: str, wait: int, after: str = work(300, 9_700, 250, 1)) -> Document:
    return picture(after, f"host user_annotation enumerate(DataLoader)#_{kind}DataLoaderIter.__next__ 0 {wait}")


def trainer(wait: int) -> Document:
    """Draw two microseconds between two batches, of which so many are waits."""
    drawn = cycle([Batch(load=2, work=98)])
    (end,) = [each for each in drawn if each["name"] == "event/dataloader" and each["ph"] == "E"]
    end["ts"] += wait - 2
    return {"traceEvents": drawn}


def starting(duration: int, after: str = BEGIN) -> Document:
    return picture(after, work(40, 10, 35, 2), f"host cuda_runtime cudaFree 100 {duration}", END)


def allocating(*names: str) -> Document:
    """Return four steps, each of which begins with a call."""
    lines = [steps(4)]
    for number, name in enumerate(names):
        at = 10_000 * number
        lines += [
            work(at + 9_000, 900, at + 8_900, number + 1),
            f"host cuda_runtime {name} {at + 100} 900",
        ]
    return {"traceEvents": [event(line) for line in "\n".join(lines).splitlines()]}


def waiting(launch: int, *wait: str) -> Document:
    """Return two kernels with a gap between them."""
    return picture(work(10, 4_990, 5, 1), *wait, work(6_000, 4_000, launch, 2))


ITEM = ("host cpu_op aten::item 1000 4010", "host cuda_runtime cudaStreamSynchronize 1005 4000")


def covering(line: str) -> Document:
    """Return a wait of 8885 us."""
    return picture(BEGIN, line, END)


def beside(thread: str, time: int) -> Document:
    """Return a function of the program between operators, which no device follows."""
    return picture(
        "host cpu_op aten::mm 0 100",
        f"host cpu_op aten::add {100 + time} 8800",
        f"{thread} python_function data.py(4):~load 50 1500",
        "host python_function train.py(1):~main 0 10000",
    )


def launching(linked: int, ahead: int = 6) -> Document:
    """Draw twenty kernels with gaps between them; `linked` of them have a launch."""
    lines = [work(300 * i, 100, max(0, 300 * i - ahead), i) for i in range(1, 21)]
    cut = [line.replace(f"correlation={i} stream", "correlation=999 stream") for i, line in enumerate(lines, 1)]
    return picture(*lines[:linked], *cut[linked:])


def copying(memory_kind: str, kernel: int) -> Document:
    return picture(
        work(kernel, 4_000, 10, 1),
        "host cuda_runtime cudaMemcpyAsync 20 5 correlation=2",
        f"gpu0 gpu_memcpy Memcpy~HtoD~({memory_kind}~->~Device) 1000 1000 correlation=2 stream=8",
    )


DDP = "host cpu_op DistributedDataParallel.forward 0 100"
FSDP = "host user_annotation FullyShardedDataParallel.forward 0 100"
WAITS = "host cuda_runtime cudaDeviceSynchronize 300 9700"
"""For the device: only so does less work of it shorten the step."""


def exchanging(marks: tuple[str, ...], *times: int, name: str = "AllReduce", at: int = 2_000) -> Document:
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


def multiplying(kind: str, major: int, kernel: str = "volta_sgemm_128x64_nn") -> Document:
    """Draw a matrix product; `kind` is the type of the second factor."""
    factors = operator("aten::mm", 90, 40, types=["float", kind])
    launched = [work(300, 5_000, 100, 1, kernel), work(9_000, 900, 200, 2), WAITS]
    properties = card(computeMajor=major, computeMinor=0)
    return picture(*launched, more=[factors], deviceProperties=properties)


def converting(name: str) -> Document:
    return picture(work(500, 1_500, 100, 1, "conv"), work(2_000, 300, 110, 2, name), WAITS)


def computing(*calls: Call, more: list[dict[str, Any]] | None = None, major: int = 9, host: float = 0) -> Document:
    return {
        "traceEvents": [STEP, SYNC, *(more or []), *events(*calls, host=host)],
        "deviceProperties": [{**H100, "computeMajor": major}],
    }


ALIGNED = product(SM90, 4096, time=150)
FUSED = operator("aten::_scaled_dot_product_attention_math", 5, 80)


def stepping(last: str, time: float, host: float, kernel: str = "vectorized") -> Document:
    """Draw eight calls in a step of an optimizer; return the name of the last of them."""
    mark = {**STEP, "name": "Optimizer.step#SGD.step", "ts": 5, "dur": 785}
    names = ["aten::add_"] * 7 + [last]
    calls = [(name, [[1000], [1000], []], FLOAT, kernel, time) for name in names]
    return computing(*calls, more=[mark], host=host)


def filled(total: int, *lines: str, size: int = 1000) -> Document:
    return picture(*lines, more=memory(f"20 GPU0 a 901 {total} 901"), deviceProperties=card(totalGlobalMem=size))


RULES: dict[tuple[str, str], Three] = {
    ("data_loading", "process"): Three(
        loading("SingleProcess", 200), loading("SingleProcess", 199), loading("SingleProcess", 4_000, ALL)
    ),
    ("data_loading", "workers"): Three(
        loading("MultiProcessing", 200), loading("MultiProcessing", 199), loading("MultiProcessing", 4_000, ALL)
    ),
    ("data_loading", "same_cpu"): Three(
        loading("MultiProcessing", 200, ON_CPU),
        loading("MultiProcessing", 199, ON_CPU),
        loading("MultiProcessing", 4_000, ALL),
    ),
    ("data_loading", "trainer"): Three(trainer(2), trainer(1), {"traceEvents": cycle([Batch(load=0, work=98)])}),
    ("start_up", ""): Three(starting(1_000), starting(999), starting(1_000, ALL)),
    ("allocator", ""): Three(
        allocating("cudaMalloc", "cudaMalloc", "cudaMalloc", "cudaEventQuery"),
        allocating("cudaMalloc", "cudaMalloc", "cudaMallocAsync", "cudaEventQuery"),
        allocating(*["cudaEventQuery"] * 4),
    ),
    ("synchronization", ""): Three(waiting(5_990, *ITEM), waiting(500, *ITEM), waiting(5_990)),
    ("host_code", "code"): Three(
        covering("host user_annotation prepare 100 4443"),
        covering("host user_annotation prepare 100 4442"),
        covering("host2 user_annotation prepare 100 8000"),
    ),
    ("host_code", "alone"): Three(beside("host", 1_001), beside("host", 1_000), beside("host2", 4_000)),
    ("host_code", "operator"): Three(
        covering("host cpu_op aten::sort 100 4443"),
        covering("host cpu_op aten::sort 100 4442"),
        covering("host2 cpu_op aten::sort 100 8000"),
    ),
    ("host_code", "call"): Three(
        covering("host cuda_runtime hipMemset 100 4443"),
        covering("host cuda_runtime hipMemset 100 4442"),
        covering("host2 cuda_runtime hipMemset 100 8000"),
    ),
    ("launch_bound", ""): Three(launching(20), launching(19), launching(20, ahead=6_000)),
    ("pageable_copies", ""): Three(copying("Pageable", 5_000), copying("Pinned", 5_000), copying("Pageable", 500)),
    ("communication", "ddp"): Three(
        exchanging((DDP, BACKWARD), 200), exchanging((DDP, BACKWARD), 199), exchanging((DDP,), 4_000)
    ),
    ("communication", "fsdp"): Three(
        exchanging((FSDP, BACKWARD), 4_000, name="AllGather"),
        exchanging((FSDP, BACKWARD), 4_000, name="AllReduce"),
        exchanging((FSDP, BACKWARD), 1_000, name="AllGather", at=800),
    ),
    ("late_rank", ""): Three(
        exchanging((DDP, BACKWARD), 100, 100, 100, 910),
        exchanging((DDP, BACKWARD), 100, 100, 100, 900),
        exchanging((DDP, BACKWARD), 1_000, 1_000, 1_000, 1_000),
    ),
    ("data_parallel", ""): Three(devices(1), devices(1, "DistributedDataParallel.forward"), devices(0)),
    ("nccl_backend", ""): Three(
        backend("gloo:all_reduce", DDP), backend("nccl:all_reduce", DDP), backend("gloo:all_reduce")
    ),
    ("mixed_precision", "fp16"): Three(
        multiplying("float", 7), multiplying("c10::Half", 7), multiplying("float", 7, "volta_h884gemm_128x64_nn")
    ),
    ("mixed_precision", "tf32"): Three(
        multiplying("float", 8), multiplying("c10::Half", 8), multiplying("float", 8, "ampere_s1688gemm_128x64_nn")
    ),
    ("layout_conversion", ""): Three(
        converting("cudnn::ops::nchwToNhwcKernel"), converting("cudnn::ops::nchwToNchwKernel"), converting("copy")
    ),
    ("slow_products", "alignment"): Three(
        computing(product(n=4099), ALIGNED), computing(product(n=4096), ALIGNED), computing(ALIGNED)
    ),
    ("slow_products", "older"): Three(
        computing(product(ALIGN8, 4096)), computing(product(ALIGN8, 4096), major=8), computing(ALIGNED)
    ),
    ("unfused_attention", "operators"): Three(
        computing(*attention()), computing(*attention(scores=1024)), computing(*attention()[:1])
    ),
    ("unfused_attention", "fallback"): Three(
        computing(*attention(), more=[FUSED]),
        computing(*attention(scores=1024), more=[FUSED]),
        computing(*attention()),
    ),
    ("elementwise_chains", ""): Three(
        computing(*chain("add", "mul", "relu")),
        computing(*chain("add", "mul", "relu", sizes=(1000, 1000, 999))),
        computing(ALIGNED, ALIGNED, ALIGNED),
    ),
    ("optimizer_loop", "launches"): Three(
        stepping("aten::add_", 2, 100),
        stepping("aten::mul_", 2, 100),
        stepping("aten::add_", 2, 100, "multi_tensor_apply_kernel<Adam>"),
    ),
    ("optimizer_loop", "kernels"): Three(
        stepping("aten::add_", 900, 0),
        stepping("aten::mul_", 900, 0),
        stepping("aten::add_", 900, 0, "multi_tensor_apply_kernel<Adam>"),
    ),
    ("memory_limit", "training"): Three(
        filled(901, BACKWARD), filled(900, BACKWARD), filled(901, BACKWARD, size=2000)
    ),
    ("memory_limit", "inference"): Three(filled(901), filled(900), filled(901, size=2000)),
}
