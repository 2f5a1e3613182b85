"""Why a tab has nothing to show, advice or a replay: a recording that lacks it, and the next one that doesn't."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec

from tests.model.calls.test_missing import MARKERS, RUN
from tests.support.claims import Claim, ReadSentences
from tests.support.memory_traces import three_steps
from tests.support.producers.rocprof import RocprofRun, rocprof_json
from tests.support.snapshots import snapshot
from tests.support.traces import document, draw, event, read, read_bytes
from tests.views.memory.test_snapshot_history import read as read_snapshot
from torch_tb_profiler.analyses.overview.finding import no_advice_reason
from torch_tb_profiler.analyses.schedule.what_if import replay_unavailable_reason
from torch_tb_profiler.ingest.memory.snapshot import as_trace
from torch_tb_profiler.model.calls.missing import missing_copies_reason, missing_kernels_reason
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.model.vendors.recording_options import recording_option
from torch_tb_profiler.views._shared.availability import REASONS, no_memory_reason

MM = "host cpu_op aten::mm 0 10"
STEP = "host user_annotation ProfilerStep#1 0 100"
LAUNCH = "host cuda_runtime cudaLaunchKernel 2 5 correlation=1"
KERNEL = "gpu0 kernel gemm 20 50 correlation=1 device=0 stream=7"
COPY = "gpu0 gpu_memcpy Memcpy~HtoD 80 10 device=0 stream=7"
FRAME = "host python_function train.py(7):~main 0 90"
MODULE = "host python_function nn.Module:~Linear_0 0 90"
ALL_REDUCE = "gpu0 kernel ncclDevKernel_AllReduce_Sum_f32_RING_LL 20 50 correlation=1 device=0 stream=7"


EARLIER = (
    "host cuda_runtime cudaLaunchKernel 0 5 correlation=7",
    "gpu0 kernel gemm 10 10 correlation=7 device=0 stream=7",
    "host user_annotation ProfilerStep#1 200 100",
    "host cuda_runtime cudaLaunchKernel 202 5 correlation=8",
)
"""A kernel before a step, and a launch in it."""
THE_KERNEL = "gpu0 kernel gemm 220 10 correlation=8 device=0 stream=7"


def untimed(slug: str) -> ReadSentences:
    """Read why a tab has nothing to show for a recording whose one event has no time."""
    trace = read([{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "dur": 1}])
    return lambda: REASONS[slug](trace) or ""


def of(find: Callable[[Trace], str | None], *lines: str, **metadata: object) -> ReadSentences:
    """Read the reason that is given for a drawn trace; nothing if there is none."""
    return lambda: find(draw("\n".join(lines), **metadata)) or ""


def tab(slug: str, *lines: str, **metadata: object) -> ReadSentences:
    """Read why a tab has nothing to show for a drawn trace."""
    return of(REASONS[slug], *lines, **metadata)


def cut(find: Callable[[Trace], str | None], without: int, *lines: str) -> ReadSentences:
    """Read the reason that is given for a file that lacks so many of its last bytes."""
    content = document([event(line) for line in lines])
    return lambda: find(read_bytes(content[: len(content) - without])) or ""


def recorded(find: Callable[[Trace], str | None], run: RocprofRun) -> ReadSentences:
    """Read the reason that is given for what rocprofv3 recorded."""
    return lambda: find(read_bytes(rocprof_json(run))) or ""


def cuda(share: int) -> ReadSentences:
    """Read why a replay is impossible of ten kernels, of which so many start as their launch says."""
    lines = [STEP.replace("0 100", "0 2000")]
    for number in range(10):
        start = 200 * number + (12 if number < share else 150)
        lines.append(f"host cuda_runtime cudaLaunchKernel {200 * number + 2} 5 correlation={number + 1}")
        lines.append(f"gpu0 kernel gemm {start} 10 correlation={number + 1} device=0 stream=7")
    return of(replay_unavailable_reason, *lines)


CLAIMS = {
    "views/_shared/availability.py": [
        Claim(
            "no event in this trace has a timestamp (`ts`), so there is no timeline",
            "no event in this trace has a timestamp",
            untimed("trace"),
            "one event has a time",
            tab("trace", MM),
        ),
        Claim(
            "no operators are recorded ({})",
            "no operators are recorded",
            tab("operators", LAUNCH, KERNEL),
            "an operator is recorded",
            tab("operators", MM, LAUNCH, KERNEL),
        ),
        Claim(
            "no kernels were recorded; {}",
            "no kernels were recorded; ",
            tab("origins", MM, COPY),
            "a kernel is recorded",
            tab("origins", MM, LAUNCH, KERNEL),
        ),
        Claim(
            "the host is not recorded; {}",
            "the host is not recorded; ",
            tab("critical_path", KERNEL),
            "the host runs an operator",
            tab("critical_path", MM, LAUNCH, KERNEL),
        ),
        Claim(
            "there is no complete {}",
            "there is no complete step",
            tab("critical_path", *EARLIER),
            "the kernel that it launches is recorded",
            tab("critical_path", *EARLIER, THE_KERNEL),
        ),
        Claim(
            "the recording doesn't link the device work to the calls that launched it",
            "the recording doesn't link the device work",
            tab("critical_path", STEP, MM, LAUNCH, KERNEL.replace("correlation=1", "correlation=9")),
            "the kernel has the number of the call",
            tab("critical_path", STEP, MM, LAUNCH, KERNEL),
        ),
        Claim(
            "no runtime call is recorded, so what launched the device work is unknown; {}",
            "no runtime call is recorded, so what launched the device work is unknown; ",
            tab("critical_path", STEP, MM, KERNEL),
            "a call is recorded, of another kernel",
            tab("critical_path", STEP, MM, LAUNCH, KERNEL.replace("correlation=1", "correlation=9")),
        ),
        Claim(
            "Python frames are recorded, but none of them is a call of an `nn.Module`; profile code that calls "
            "the model",
            "Python frames are recorded, but none of them is a call of an `nn.Module`",
            tab("modules", FRAME, MM),
            "one of them is",
            tab("modules", FRAME, MODULE, MM),
        ),
        Claim(
            "no module call is recorded: {}",
            "no module call is recorded: ",
            tab("modules", MM),
            "Python frames are recorded, so it isn't the option",
            tab("modules", FRAME, MM),
        ),
        Claim(
            "no marks of Lightning's profiler (`[pl][profile]`, `[pl][module]`) were recorded; train with "
            "`Trainer(profiler=PyTorchProfiler(record_module_names=True))`",
            "no marks of Lightning's profiler",
            tab("lightning", MM),
            "a hook is marked",
            tab("lightning", "host user_annotation [pl][profile]run_training_batch 0 50"),
        ),
        Claim(
            "the trace records no communication between ranks (NCCL, Gloo, MPI, ...)",
            "the trace records no communication between ranks",
            tab("distributed", LAUNCH, KERNEL),
            "its kernel is a collective",
            tab("distributed", LAUNCH, ALL_REDUCE),
        ),
        Claim(
            "the trace records no communication between ranks (NCCL, Gloo, MPI, ...)",
            "the trace records no communication between ranks",
            tab("distributed", LAUNCH, KERNEL, distributedInfo={"rank": 0, "world_size": 1}),
            "it is one of two ranks",
            tab("distributed", LAUNCH, KERNEL, distributedInfo={"rank": 0, "world_size": 2}),
        ),
        Claim(
            "no iteration metrics were recorded ({}: `rank_*_metrics.jsonl`)",
            "no iteration metrics were recorded",
            tab("overlap", MM),
            "its times are those of iterations",
            lambda: REASONS["overlap"](msgspec.structs.replace(draw(MM), clock="iteration")) or "",
        ),
        Claim(
            "this recording is a memory snapshot; `memory/snapshot` shows it",
            "this recording is a memory snapshot",
            lambda: no_memory_reason(as_trace(read_snapshot(snapshot()))),
            "it is a trace",
            of(no_memory_reason, MM),
        ),
        Claim(
            "no memory events were recorded ({})",
            "no memory events were recorded",
            tab("memory", MM),
            "memory is recorded",
            lambda: REASONS["memory"](three_steps()) or "",
        ),
        Claim(
            "the trace has no event with a time and a duration, so there is nothing to compare",
            "the trace has no event with a time and a duration",
            untimed("diff"),
            "it has one",
            tab("diff", MM),
        ),
    ],
    "model/calls/missing.py": [
        Claim(
            "kernels were launched, but the profiler didn't record the device",
            "kernels were launched, but the profiler didn't record the device",
            of(missing_kernels_reason, LAUNCH),
            "the call only waits",
            of(missing_kernels_reason, LAUNCH.replace("cudaLaunchKernel", "cudaDeviceSynchronize")),
        ),
        Claim(
            "kernels were launched but not recorded; {}",
            "kernels were launched but not recorded; `rocprofv3 --kernel-trace`",
            recorded(missing_kernels_reason, replace(RUN, dispatches=[])),
            "no call launches any",
            recorded(
                missing_kernels_reason,
                RocprofRun(calls=[each for each in RUN.calls if "Launch" not in each.name], copies=RUN.copies),
            ),
        ),
        Claim(
            "no kernels were recorded, nor calls that would show whether any ran; {}",
            "no kernels were recorded, nor calls that would show whether any ran",
            recorded(missing_kernels_reason, replace(RUN, dispatches=[], calls=MARKERS)),
            "the calls are recorded",
            recorded(missing_kernels_reason, replace(RUN, dispatches=[])),
        ),
        Claim(
            "copies were made but not recorded; {}",
            "copies were made but not recorded; `rocprofv3 --memory-copy-trace`",
            recorded(missing_copies_reason, replace(RUN, copies=[])),
            "no call makes any",
            recorded(
                missing_copies_reason,
                replace(RUN, copies=[], calls=[each for each in RUN.calls if "Memcpy" not in each.name]),
            ),
        ),
        Claim(
            "no copies were recorded, nor calls that would show whether any were made; {}",
            "no copies were recorded, nor calls that would show whether any were made",
            recorded(missing_copies_reason, RocprofRun(dispatches=RUN.dispatches)),
            "the calls are recorded",
            recorded(missing_copies_reason, replace(RUN, copies=[])),
        ),
    ],
    "model/vendors/recording_options.py": [
        Claim(
            "no device work is recorded; {}",
            "no device work is recorded; ",
            tab("kernels", MM),
            "the file is cut off, so it may have been lost",
            cut(REASONS["kernels"], 25, MM, MM),
        ),
        Claim(
            "the file is truncated before any device work",
            "the file is truncated before any device work",
            cut(REASONS["kernels"], 25, MM, MM),
            "its last 25 bytes are there",
            cut(REASONS["kernels"], 0, MM, MM),
        ),
        Claim(
            "the file is truncated, which may be why",
            "the file is truncated, which may be why",
            cut(lambda trace: recording_option(trace, "modules"), 25, MM, MM),
            "its last 25 bytes are there",
            cut(lambda trace: recording_option(trace, "modules"), 0, MM, MM),
        ),
    ],
    "analyses/schedule/what_if.py": [
        Claim(
            "no device work is recorded",
            "^no device work is recorded",
            of(replay_unavailable_reason, STEP, MM),
            "a kernel is recorded",
            of(replay_unavailable_reason, STEP, LAUNCH, KERNEL),
        ),
        Claim(
            "kernels are missing from the recording",
            "kernels are missing from the recording",
            of(replay_unavailable_reason, STEP, LAUNCH, COPY),
            "no kernel is launched",
            of(replay_unavailable_reason, STEP, COPY),
        ),
        Claim(
            "no launch is recorded",
            "no launch is recorded",
            of(replay_unavailable_reason, STEP, MM, KERNEL),
            "it is",
            of(replay_unavailable_reason, STEP, MM, LAUNCH, KERNEL),
        ),
        Claim(
            "the recorded launches and syncs explain the start of {} of {} (at least {} is needed)",
            "explain the start of only 80% of the device work in complete steps",
            cuda(8),
            "they explain all of it",
            cuda(10),
        ),
        Claim(
            "the recorded launches and syncs explain the start of {} of {} (at least {} is needed)",
            "explain the start of none of the device work in complete steps",
            cuda(0),
            "they explain one of ten",
            cuda(1),
        ),
    ],
    "analyses/overview/finding.py": [
        Claim(
            "the file is truncated, and the missing part could change the picture",
            "the file is truncated, and the missing part could change the picture",
            cut(no_advice_reason, 25, STEP, LAUNCH, KERNEL, MM),
            "its last 25 bytes are there",
            cut(no_advice_reason, 0, STEP, LAUNCH, KERNEL, MM),
        ),
        Claim(
            "there is no complete {}",
            "there is no complete step",
            of(no_advice_reason, *EARLIER),
            "the kernel that it launches is recorded",
            of(no_advice_reason, *EARLIER, THE_KERNEL),
        ),
        Claim(
            "this trace captures graphs, which happens once and doesn't show what later {}s do",
            "this trace captures graphs, which happens once and doesn't show what later steps do",
            of(no_advice_reason, STEP, LAUNCH, KERNEL, "host cuda_runtime cudaStreamBeginCapture 60 5"),
            "it replays one",
            of(no_advice_reason, STEP, LAUNCH, KERNEL, "host cuda_runtime cudaGraphLaunch 60 5"),
        ),
        Claim(
            "the profiler didn't record the device",
            "the profiler didn't record the device",
            of(no_advice_reason, STEP, LAUNCH),
            "the kernel is recorded",
            of(no_advice_reason, STEP, LAUNCH, KERNEL),
        ),
        Claim(
            "the profiler didn't record the kernels",
            "the profiler didn't record the kernels",
            of(no_advice_reason, STEP, LAUNCH, COPY),
            "they are recorded, too",
            of(no_advice_reason, STEP, LAUNCH, KERNEL, COPY),
        ),
        Claim(
            "the profiler didn't record the copies, so a device may be copying where it looks idle",
            "the profiler didn't record the copies",
            of(no_advice_reason, STEP, LAUNCH, KERNEL, "host cuda_runtime cudaMemcpyAsync 75 5"),
            "they are recorded, too",
            of(no_advice_reason, STEP, LAUNCH, KERNEL, "host cuda_runtime cudaMemcpyAsync 75 5", COPY),
        ),
    ],
}

NO_CLAIMS = {
    "no flight recorder dumps were found (`nccl_trace_rank_*`; set `TORCH_NCCL_DUMP_ON_TIMEOUT=1`)": "said of a "
    "trace alone, whose dumps are files of their own: tests/session/test_dumps.py",
}
"""Reasons that say nothing that a trace could make false."""
