"""Why fields of a view are null: a recording of which they are for that reason, and the next one."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from tests.model.origins.drawing import host, replay
from tests.model.origins.test_replays import KERNELS
from tests.model.origins.test_users import two_replays
from tests.model.work.operator_events import BF16, FLOAT, LIST, formula_cost, kernel, launch, operator
from tests.support.claims import Claim, ReadSentences
from tests.support.memory_traces import CALLS, STEPS, memory, three_steps
from tests.support.traces import draw, read
from tests.support.views import ask, words
from tests.views.modules.claims import PICTURE
from tests.views.reasons.tabs import COPY, EARLIER, FRAME, KERNEL, LAUNCH, MM, MODULE, STEP, THE_KERNEL, cut
from tests.views.roofline.claims import H100
from torch_tb_profiler.analyses.roofline.speeds import missing_work_reason
from torch_tb_profiler.model.trace import Trace, TracePair
from torch_tb_profiler.views import find_tab
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.diff.build import build as build_diff
from torch_tb_profiler.views.diff.payload import DiffParams
from torch_tb_profiler.views.overview.build import hardware_use

GPU: dict[str, Any] = {
    "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-40GB", "totalGlobalMem": 40 * 2**30}]
}
WHOLE_GPU = {
    "deviceProperties": [GPU["deviceProperties"][0] | {"computeMajor": 8, "computeMinor": 0, "numSms": 108}]
}
SHAPED = operator("aten::mm", 0, 10, dims=[[64, 64], [64, 64]], types=["float", "float"])
OTHER_LAUNCH = "host cuda_runtime cudaLaunchKernel 12 5 correlation=2"
OTHER_KERNEL = "gpu0 kernel gemm 75 5 correlation=2 device=0 stream=7"


def of(slug: str, field: str, trace: Trace, **params: object) -> ReadSentences:
    """Read why a field of a view is null; nothing where it isn't."""
    return lambda: words(ask(trace, slug, **params)["reasons"].get(field, ()))


def field(slug: str, name: str, *lines: str, **metadata: object) -> ReadSentences:
    """Read why a field of a view of a drawn trace is null."""
    return of(slug, name, draw("\n".join(lines), **metadata))


def on_card(name: str, **metadata: object) -> ReadSentences:
    """Read why the card of a device lacks a figure."""
    trace = draw("\n".join((STEP, LAUNCH, KERNEL)), **metadata)
    return lambda: words(ask(trace, "overview")["devices"][0]["reasons"].get(name, ()))


def limited() -> Trace:
    """Draw a kernel with its registers on a device with its limits."""
    card = {
        "id": 0,
        "maxThreadsPerMultiprocessor": 2048,
        "regsPerMultiprocessor": 65536,
        "sharedMemPerMultiprocessor": 65536,
    }
    resources = "block=[256,1,1] registers per thread=200 shared memory=0 blocks per SM=40"
    return draw("\n".join((MM, LAUNCH, f"{KERNEL} {resources}")), deviceProperties=[card])


def recomputed(type_: str) -> Trace:
    """Draw a product in bf16 whose input a checkpoint computes again in backward, in this type."""
    dims = [[1000, 1000], [1000, 1000]]
    engine = "autograd::engine::evaluate_function: CheckpointFunctionBackward"
    forward = {"dims": dims, "types": [BF16, BF16], "Fwd thread id": 0}
    events = [
        operator("aten::mm", 0, 9, **forward, **{"Sequence number": 1}),
        launch(1, 1),
        kernel("gemm", 10, 50, 1),
        operator(engine, 70, 60, **{"Sequence number": 3, "Fwd thread id": 1}),
        operator("aten::mm", 80, 9, **{**forward, "types": [type_, type_], "Sequence number": 4}),
        launch(81, 2),
        kernel("gemm", 90, 50, 2),
    ]
    return read(events, deviceProperties=[H100])


def scripted() -> Trace:
    """Draw an operator of a scripted model, which names the modules around it."""
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0.0, "dur": 8.0}
    return draw("", {**event, "args": {"Module Hierarchy": "TOP(C)::forward.A0(A)::forward."}})


def replayed(called: bool) -> Trace:
    """Draw a module whose kernels a graph replays, or whose call is recorded."""
    if called:
        return draw(f"{MODULE}\n{MM}\n{LAUNCH}\n{KERNEL}")
    return replace(
        read([*replay(KERNELS), host("cpu_op", "x", 30_000, 50)]), origin_records=two_replays().origin_records
    )


HOOK = "host user_annotation [pl][profile]run_training_batch 0 50"
PL_MODULE = "host user_annotation [pl][module]torch.nn.modules.linear.Linear:~layer 5 20"
CARD = {"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "ts": 0, "args": {"name": "/device:HPU:0"}}
ENGINE = {"ph": "X", "cat": "Runtime", "name": "x", "pid": 0, "tid": 14002, "ts": 1, "dur": 1}
UNTIMED = {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "dur": 1}


def product(us: float, name: str = "aten::mm") -> Trace:
    """Draw a product of 2 GFLOP on an H100 whose kernel takes so many us."""
    dims = {"dims": [[1000, 1000], [1000, 1000]], "types": [BF16, BF16]}
    events = [operator(name, 0, 50, **dims), launch(10, 1), kernel("gemm", 20, us, 1)]
    return read(events, deviceProperties=[H100])


def hardware(trace: Trace, name: str = "mfu") -> ReadSentences:
    """Read why Overview says nothing of how much of its peak a device uses."""
    return lambda: words(ask(trace, "overview")["hardware"]["reasons"].get(name, ()))


def compared(name: str, base: Trace, candidate: Trace) -> ReadSentences:
    """Read why a field of Diff is null."""
    return lambda: plain(build_diff(TracePair((base,), (candidate,)), DiffParams()).reasons.get(name, ()))


def copied(name: str) -> ReadSentences:
    """Read why a copy of this name has no limit in Roofline."""
    dims = {"dims": [[1000, 1000], [1000, 1000]], "types": ["float", "float"]}
    copy = kernel(name, 20, 80, 1, cat="gpu_memcpy", bytes=4_000_000)
    trace = read([operator("aten::copy_", 0, 50, **dims), launch(10, 1), copy], deviceProperties=[H100])
    return lambda: ask(trace, "roofline")["rows"][0]["reason"] or ""


def sized(size: str) -> ReadSentences:
    """Read why the bytes of a convolution's backward are unknown, with or without the size of its input."""
    shapes = [[], [2, 4, 8, 8], [4, 3, 3, 3]]
    name = "aten::cudnn_convolution_backward_input"
    return lambda: formula_cost(name, shapes, [LIST, FLOAT, FLOAT], [size, "", ""]).reason or ""


CLAIMS = {
    "analyses/roofline/summary.py": [
        Claim(
            "it copies to or from the host, so device memory isn't its limit",
            "it copies to or from the host, so device memory isn't its limit",
            copied("Memcpy HtoD (Pageable -> Device)"),
            "it copies on the device",
            copied("Memcpy DtoD (Device -> Device)"),
        ),
    ],
    "model/costs/formulas/convolution.py": [
        Claim(
            "the shape of its result is not recorded",
            "the shape of its result is not recorded",
            sized(""),
            "it is",
            sized("[2, 3, 8, 8]"),
        ),
    ],
    "analyses/roofline/speeds.py": [
        Claim(
            "no input shapes were recorded, so FLOPs and bytes are unknown ({})",
            "no input shapes were recorded, so FLOPs and bytes are unknown",
            lambda: missing_work_reason(draw("\n".join((MM, LAUNCH, KERNEL)))) or "",
            "they were",
            lambda: missing_work_reason(product(80)) or "",
        ),
    ],
    "views/overview/recorded.py": [
        Claim(
            "no steps in this trace, so it's shown as one: {}",
            "no steps in this trace, so it's shown as one: ",
            field("overview", "steps", MM),
            "a step is recorded",
            field("overview", "steps", STEP, MM),
        ),
        Claim(
            "there is no complete {}",
            "there is no complete step",
            field("overview", "average", *EARLIER),
            "the kernel that it launches is recorded",
            field("overview", "average", *EARLIER, THE_KERNEL),
        ),
        Claim(
            "the trace doesn't describe the device",
            "the trace doesn't describe the device",
            on_card("compute_capability"),
            "it does, without that",
            on_card("compute_capability", **GPU),
        ),
        Claim(
            "the trace's description of the device lacks it",
            "the trace's description of the device lacks it",
            on_card("compute_capability", **GPU),
            "it has it",
            on_card("compute_capability", **WHOLE_GPU),
        ),
    ],
    "views/kernels/build.py": [
        Claim(
            "neither graphs nor compiled code launched kernels, so every origin is known from the launch",
            "neither graphs nor compiled code launched kernels",
            field("kernels", "origin", MM, LAUNCH, KERNEL),
            "a graph did",
            field("kernels", "origin", MM, LAUNCH.replace("LaunchKernel", "GraphLaunch"), KERNEL),
        ),
        Claim(
            "the trace has no `blocks per SM` for these kernels",
            "the trace has no `blocks per SM` for these kernels",
            field("kernels", "mean_blocks_per_sm", MM, LAUNCH, KERNEL),
            "it has",
            field("kernels", "mean_blocks_per_sm", MM, LAUNCH, f"{KERNEL} blocks per SM=2.5"),
        ),
        Claim(
            "the trace has no `est. achieved occupancy %` for these kernels",
            "the trace has no `est. achieved occupancy %` for these kernels",
            field("kernels", "mean_occupancy", MM, LAUNCH, KERNEL),
            "it has",
            field("kernels", "mean_occupancy", MM, LAUNCH, f"{KERNEL} est. achieved occupancy %=50"),
        ),
        Claim(
            "the kernel names don't show whether they run on Tensor Cores{}",
            "the kernel names don't show whether they run on Tensor Cores",
            field("kernels", "tc_used", MM, LAUNCH, KERNEL),
            "the name carries the instruction",
            field("kernels", "tc_used", MM, LAUNCH, KERNEL.replace("gemm", "ampere_h16816gemm_128x64_nn")),
        ),
        Claim(
            "the trace lacks the device's limits or the kernels' registers{}",
            "the trace lacks the device's limits or the kernels' registers",
            field("kernels", "limiter", MM, LAUNCH, KERNEL),
            "it has them",
            of("kernels", "limiter", limited()),
        ),
        Claim(
            ", or the kernels of each family differ",
            ", or the kernels of each family differ",
            of("kernels", "tc_used", draw("\n".join((MM, LAUNCH, KERNEL))), group_by="family"),
            "the rows are kernels",
            of("kernels", "tc_used", draw("\n".join((MM, LAUNCH, KERNEL)))),
        ),
    ],
    "views/operators/build.py": [
        Claim(
            "no input shapes are recorded ({})",
            "no input shapes are recorded",
            field("operators", "input_shape", MM),
            "they are",
            of("operators", "input_shape", read([SHAPED])),
        ),
        Claim(
            "no nn.Module is recorded ({})",
            "no nn.Module is recorded",
            of("operators", "module", draw(MM), group_by="module"),
            "one is",
            of("operators", "module", draw(f"{MODULE}\n{MM}"), group_by="module"),
        ),
        Claim(
            "no call stacks are recorded ({})",
            "no call stacks are recorded",
            field("operators", "stacks", MM),
            "a frame is around the operator",
            field("operators", "stacks", FRAME, MM),
        ),
        Claim(
            "operators are compiled into graphs, and Gaudi's profiler doesn't record which node belongs to which",
            "operators are compiled into graphs, and Gaudi's profiler doesn't record which node belongs to which",
            of("operators", "device_self_ns", read([CARD, ENGINE])),
            "the process is no card",
            of("operators", "device_self_ns", read([CARD | {"args": {"name": "python"}}, ENGINE])),
        ),
        Claim(
            "these calls have no Python frame around them",
            "these calls have no Python frame around them",
            lambda: words(
                ask(
                    draw(f"host python_function a.py(1):~f 50 20\n{MM}\nhost cpu_op aten::add 55 5"),
                    "operators/stacks",
                    event=1,
                )["reason"]
                or ()
            ),
            "no frame is recorded at all",
            lambda: words(ask(draw(MM), "operators/stacks", event=0)["reason"] or ()),
        ),
    ],
    "views/idle/build.py": [
        Claim(
            "gaps can't be attributed to host code: {}",
            "gaps can't be attributed to host code: the profiler didn't record the host",
            field("idle", "causes", KERNEL, COPY),
            "the host is recorded",
            field("idle", "causes", MM, LAUNCH, KERNEL),
        ),
        Claim(
            "no runtime calls were recorded, so it's unknown which thread launched what, and when",
            "no runtime calls were recorded, so it's unknown which thread launched what",
            field("idle", "causes", MM, KERNEL),
            "one is",
            field("idle", "causes", MM, LAUNCH, KERNEL),
        ),
    ],
    "views/critical_path/build.py": [
        Claim(
            "no device work is recorded, so the path is the main thread",
            "no device work is recorded, so the path is the main thread",
            field("critical_path", "explained", STEP, MM),
            "a kernel is",
            field("critical_path", "explained", STEP, MM, LAUNCH, KERNEL),
        ),
        Claim(
            "{} kernels, copies and memsets have no recorded launch, so changes on the host don't move them",
            "1 of 2 kernels, copies and memsets have no recorded launch",
            field("critical_path", "targets", STEP, MM, LAUNCH, KERNEL, OTHER_KERNEL),
            "it has one",
            field("critical_path", "targets", STEP, MM, LAUNCH, OTHER_LAUNCH, KERNEL, OTHER_KERNEL),
        ),
    ],
    "views/_shared/modules.py": [
        Claim(
            "no device work was recorded",
            "^no device work was recorded",
            field("modules", "device_share", FRAME, MODULE, MM),
            "a kernel is launched in the module",
            field("modules", "device_share", FRAME, MODULE, MM, LAUNCH, KERNEL),
        ),
        Claim(
            "only operators name these modules (`Module Hierarchy`); their calls weren't recorded",
            "only operators name these modules",
            of("modules", "calls", scripted()),
            "their calls are recorded",
            of("modules", "calls", draw(f"{FRAME}\n{MODULE}\n{MM}")),
        ),
        Claim(
            "a graph replayed these modules: the host didn't call them",
            "a graph replayed these modules: the host didn't call them",
            of("modules", "calls", replayed(called=False)),
            "it did",
            of("modules", "calls", replayed(called=True)),
        ),
        Claim(
            "no backward operator could be linked to a forward operator inside a module",
            "no backward operator could be linked to a forward operator inside a module",
            of("modules", "backward", draw(f"{FRAME}\n{MODULE}\n{MM}")),
            "one is",
            of("modules", "backward", draw(PICTURE)),
        ),
        Claim(
            "the trace has no module ids",
            "the trace has no module ids",
            field("modules", "module_id", FRAME, MODULE, MM),
            "it has",
            field("modules", "module_id", FRAME, f"{MODULE} Python module id=0", MM),
        ),
    ],
    "views/roofline/build.py": [
        Claim(
            "no device work matches",
            "no device work matches",
            of("roofline", "coverage", product(0)),
            "the kernel takes time",
            of("roofline", "coverage", product(80)),
        ),
        Claim(
            "no matmul or convolution with known FLOPs and a known peak rate was recorded",
            "no matmul or convolution with known FLOPs and a known peak rate was recorded",
            of("roofline", "mfu", product(80, "lib::x")),
            "it is a product",
            of("roofline", "mfu", product(80)),
        ),
        Claim(
            "the peak rate of a recomputed data type isn't known",
            "the peak rate of a recomputed data type isn't known",
            of("roofline", "hfu", recomputed("long int")),
            "it is",
            of("roofline", "hfu", recomputed(BF16)),
        ),
    ],
    "views/overview/build.py": [
        Claim(
            "the peak of a recomputed type is unknown",
            "the peak of a recomputed type is unknown",
            hardware(recomputed("long int"), "hfu"),
            "it is known",
            hardware(recomputed(BF16), "hfu"),
        ),
        Claim(
            "the trace has no event with a time and a duration, so there is nothing to break down",
            "the trace has no event with a time and a duration",
            lambda: find_tab("overview").reason(read([UNTIMED])) or "",
            "it has one",
            lambda: find_tab("overview").reason(draw(MM)) or "",
        ),
        Claim(
            "no matmul or convolution with known FLOPs and a known peak was recorded",
            "no matmul or convolution with known FLOPs and a known peak was recorded",
            hardware(product(80, "lib::x")),
            "it is a product",
            hardware(product(80)),
        ),
        Claim(
            "the file is truncated, and the missing part may hold the device work",
            "the file is truncated, and the missing part may hold the device work",
            cut(lambda trace: str(hardware_use(trace)), 25, MM, MM),
            "its last 25 bytes are there",
            cut(lambda trace: str(hardware_use(trace)), 0, MM, MM),
        ),
    ],
    "views/lightning.py": [
        Claim(
            "no `[pl][module]` was recorded; pass `PyTorchProfiler(record_module_names=True)`",
            r"no `\[pl\]\[module\]` was recorded",
            field("lightning", "rows", HOOK),
            "a module is recorded",
            field("lightning", "rows", HOOK, PL_MODULE),
        ),
        Claim(
            "no `[pl][profile]` was recorded; pass `Trainer(profiler=PyTorchProfiler(...))`",
            r"no `\[pl\]\[profile\]` was recorded",
            field("lightning", "hooks", PL_MODULE),
            "a hook is recorded",
            field("lightning", "hooks", HOOK, PL_MODULE),
        ),
    ],
    "views/diff/build.py": [
        Claim(
            "{} recorded no memory events ({})",
            "the candidate recorded no memory events",
            compared("memory", three_steps(), draw(MM)),
            "it did",
            compared("memory", three_steps(), three_steps()),
        ),
        Claim(
            "at least one file has no memory totals, which PyTorch records since 1.10",
            "at least one file has no memory totals",
            compared("memory", three_steps(), draw(CALLS, *memory("20 GPU0 a 512 - -"))),
            "all have them",
            compared("memory", three_steps(), three_steps()),
        ),
        Claim(
            "at least one side recorded no input shapes ({})",
            "at least one side recorded no input shapes",
            compared("work", read([SHAPED]), draw(MM)),
            "both did",
            compared("work", read([SHAPED]), read([SHAPED])),
        ),
        Claim(
            "at least one side has fewer than two {}s",
            "at least one side has fewer than two steps",
            compared("low_ns", draw(STEPS), draw(STEP)),
            "both have five",
            compared("low_ns", draw(STEPS), draw(STEPS)),
        ),
    ],
}

NO_CLAIMS = {
    "estimated only for the largest rows in which the host is late, and for their causes": "which rows have gains",
    "there is no device time, or the kernel names don't tell": "shown where a row has no ratio, and nowhere else",
    "has no recorded launch": "a part of sentences: tests/views/modules/claims.py",
}
"""Reasons that say nothing that a trace could make false."""
