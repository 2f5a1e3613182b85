"""Draws a recording as rocprofv3 writes it, in each of its files, after the public formats.

    run = training(steps=2)
    rocprof_json(run)  one document, records by kind, names by index
    rocpd(run, 3)    SQLite: times in the rows;  rocpd(run, 4): times and tracks apart
    chrome(run)      the same as PyTorch's profiler would have written it, to compare with
    counters_csv(run)  the table of counters beside either

Agent 4 of the machine is its first GPU. Times are ns since the machine booted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

BOOT = 3_600_000_000_000_000
CPU, GPU = 0, 4
"""Node ids."""

CPU_INDEX, GPU_INDEX = 0, 1
"""Logical node ids: an empty node of the machine does not count."""

PID = 4242
MAIN = 4242
DOMAINS: dict[str, list[str]] = {
    "NONE": [],
    "HIP_RUNTIME_API": ["hipMemcpyAsync", "hipLaunchKernel", "hipDeviceSynchronize"],
    "HSA_CORE_API": ["hsa_signal_store_screlease"],
    "MARKER_CORE_RANGE_API": ["roctxThreadRangeA"],
    "RCCL_API": ["ncclAllReduce"],
    "MEMORY_COPY": [
        "MEMORY_COPY_NONE",
        "MEMORY_COPY_HOST_TO_HOST",
        "MEMORY_COPY_HOST_TO_DEVICE",
        "MEMORY_COPY_DEVICE_TO_HOST",
    ],
    "KERNEL_DISPATCH": ["KERNEL_DISPATCH_NONE", "KERNEL_DISPATCH_ENQUEUE"],
}
KINDS = list(DOMAINS)
LISTS = {
    "HIP_RUNTIME_API": "hip_api",
    "HSA_CORE_API": "hsa_api",
    "MARKER_CORE_RANGE_API": "marker_api",
    "RCCL_API": "rccl_api",
}
KERNELS = ("void gemm<float, 4>(int*)", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)")
MANGLED = ("_Z4gemmIfLi4EEvPi.kd", "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL17ncclDevKernelArgs.kd")
CATEGORIES = {
    "HIP_RUNTIME_API": "hip_runtime",
    "HSA_CORE_API": "hip_driver",
    "MARKER_CORE_RANGE_API": "user_annotation",
    "RCCL_API": "collective_comm",
}


@dataclass(frozen=True)
class RocprofCall:
    """A call on the host; `message` of a marker."""

    domain: str
    name: str
    start: int
    end: int
    correlation: int
    message: str | None = None
    tid: int = MAIN


@dataclass(frozen=True)
class RocprofDispatch:
    """A kernel by its number in KERNELS; `grid` in work items."""

    kernel: int
    start: int
    end: int
    correlation: int
    stream: int
    grid: tuple[int, int, int] = (1000, 6, 1)
    block: tuple[int, int, int] = (256, 2, 1)
    queue: int = 1
    counters: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class RocprofCopy:
    """From or to the GPU."""

    to_device: bool
    start: int
    end: int
    correlation: int
    stream: int
    size: int = 1 << 20

    @property
    def operation(self) -> str:
        return "MEMORY_COPY_HOST_TO_DEVICE" if self.to_device else "MEMORY_COPY_DEVICE_TO_HOST"

    @property
    def agents(self) -> tuple[int, int]:
        """Return source and target."""
        return (CPU, GPU) if self.to_device else (GPU, CPU)


@dataclass
class RocprofRun:
    """What happened; offsets in ns from BOOT."""

    calls: list[RocprofCall] = field(default_factory=list)
    dispatches: list[RocprofDispatch] = field(default_factory=list)
    copies: list[RocprofCopy] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=lambda: {"RANK": "3", "WORLD_SIZE": "8"})


def draw_training(steps: int = 3) -> RocprofRun:
    """Return steps of a copy, a gemm, an all-reduce on a second stream that half overlaps it, and a wait."""
    run, at, correlation = RocprofRun(), 0, 1
    for step in range(steps):
        ids = range(correlation, correlation + 8)
        correlation += 8
        hip = "HIP_RUNTIME_API"
        run.calls += [
            RocprofCall("MARKER_CORE_RANGE_API", "roctxThreadRangeA", at, at + 900_017, ids[0], f"step {step}"),
            RocprofCall(hip, "hipMemcpyAsync", at + 1_000, at + 21_003, ids[1]),
            RocprofCall("HSA_CORE_API", "hsa_signal_store_screlease", at + 2_000, at + 2_007, ids[2]),
            RocprofCall(hip, "hipLaunchKernel", at + 30_000, at + 36_000, ids[3]),
            RocprofCall("RCCL_API", "ncclAllReduce", at + 40_000, at + 60_001, ids[4]),
            RocprofCall(hip, "hipLaunchKernel", at + 45_000, at + 51_000, ids[5]),
            RocprofCall(hip, "hipDeviceSynchronize", at + 70_000, at + 800_011, ids[6]),
            RocprofCall("MARKER_CORE_RANGE_API", "roctxThreadRangeA", at + 25_000, at + 66_000, ids[7], "forward"),
        ]
        run.copies.append(RocprofCopy(True, at + 10_001, at + 110_004, ids[1], 0))
        run.dispatches += [
            RocprofDispatch(0, at + 120_000, at + 420_011 + step, ids[3], 0),
            RocprofDispatch(
                1, at + 270_005, at + 700_013, ids[5], 1, grid=(8 * 512, 1, 1), block=(512, 1, 1), queue=2
            ),
        ]
        at += 1_000_000 + 7 * step
    return run


def agents() -> list[dict[str, Any]]:
    """Return the agents as both JSON and the rows of rocpd describe them."""
    common = {"size": 304, "vendor_name": "AMD", "model_name": ""}
    return [
        {**common, "id": {"handle": 11}, "type": 1, "node_id": CPU, "logical_node_id": CPU_INDEX,
         "name": "AMD EPYC 9654", "product_name": "AMD EPYC 9654", "cu_count": 96, "mem_banks": []},
        {**common, "id": {"handle": 12}, "type": 2, "node_id": GPU, "logical_node_id": GPU_INDEX,
         "name": "gfx942", "product_name": "AMD Instinct MI300X", "cu_count": 304, "wave_front_size": 64,
         "mem_banks": [{"heap_type": 2, "size_in_bytes": 192 << 30}, {"heap_type": 4, "size_in_bytes": 65536}]},
    ]  # fmt: skip


HANDLES = {CPU: 11, GPU: 12}


def document(run: RocprofRun, *, streams: bool = True, **more: Any) -> dict[str, Any]:
    """Return one process; `streams=False` as before ROCm 7, `more` further keys of it."""
    # All lists are written, in this order; those at the end are empty as a rule.
    buffers: dict[str, list[Any]] = {
        "kernel_dispatch": [],
        **{name: [] for name in LISTS.values()},
        "memory_copy": [],
        "memory_allocation": [],
        "scratch_memory": [],
    }
    for call in run.calls:
        buffers[LISTS[call.domain]].append(
            {
                "size": 56,
                **_record(call.domain, call.name, call.start, call.end, call.correlation),
                "thread_id": call.tid,
            }
        )
    for number, each in enumerate(run.dispatches, 1):
        record = _record("KERNEL_DISPATCH", "KERNEL_DISPATCH_ENQUEUE", each.start, each.end, each.correlation)
        info = {
            "size": 112, "agent_id": {"handle": HANDLES[GPU]}, "queue_id": {"handle": each.queue},
            "kernel_id": each.kernel + 1, "dispatch_id": number,
            "private_segment_size": 0, "group_segment_size": 4096,
            "workgroup_size": dict(zip("xyz", each.block, strict=True)),
            "grid_size": dict(zip("xyz", each.grid, strict=True)),
        }  # fmt: skip
        stream = {"stream_id": {"handle": each.stream}} if streams else {}
        buffers["kernel_dispatch"].append({**record, "thread_id": MAIN, "dispatch_info": info, **stream})
    for copy in run.copies:
        source, target = copy.agents
        record = _record("MEMORY_COPY", copy.operation, copy.start, copy.end, copy.correlation)
        stream = {"stream_id": {"handle": copy.stream}} if streams else {}
        ends = {"src_agent_id": {"handle": HANDLES[source]}, "dst_agent_id": {"handle": HANDLES[target]}}
        buffers["memory_copy"].append({**record, "thread_id": MAIN, **ends, "bytes": copy.size, **stream})
    symbols = [{"kernel_id": 0, "kernel_name": "", "formatted_kernel_name": ""}] + [
        {"kernel_id": i, "kernel_name": mangled, "formatted_kernel_name": name}
        for i, (mangled, name) in enumerate(zip(MANGLED, KERNELS, strict=True), 1)
    ]
    process = {
        "metadata": {
            "pid": PID,
            "init_time": BOOT,
            "fini_time": BOOT,
            "command": ["python", "train.py"],
            "config": {},
        },
        "agents": agents(),
        "counters": [
            {"agent_id": {"handle": HANDLES[GPU]}, "id": {"handle": 7000 + at}, "name": name, "is_derived": 0}
            for at, name in enumerate(counter_names(run))
        ],
        "strings": {
            "callback_records": [],
            "buffer_records": [{"kind": kind, "operations": names} for kind, names in DOMAINS.items()],
            "marker_api": [{"key": c.correlation, "value": c.message} for c in run.calls if c.message is not None],
        },
        "kernel_symbols": symbols,
        "summary": [{"domain": "KERNEL_DISPATCH", "stats": {"count": len(run.dispatches)}}],
        "callback_records": {"counter_collection": [*_counter_values(run)]},
        "buffer_records": buffers,
        **more,
    }
    return {"rocprofiler-sdk-tool": [process]}


def counter_names(run: RocprofRun) -> list[str]:
    """Return the names of all counters of the dispatches."""
    return sorted({name for each in run.dispatches for name in each.counters})


def _counter_values(run: RocprofRun) -> Iterator[dict[str, Any]]:
    """Yield a value for each of two parts of the device."""
    handles = {name: 7000 + at for at, name in enumerate(counter_names(run))}
    for number, each in enumerate(run.dispatches, 1):
        values = [
            {"counter_id": {"handle": handles[name]}, "value": part}
            for name, value in each.counters.items()
            for part in (0.25 * value, 0.75 * value)
        ]
        data = {
            "size": 200, "correlation_id": {"internal": each.correlation, "external": 0},
            "start_timestamp": BOOT + each.start, "end_timestamp": BOOT + each.end,
            "dispatch_info": {
                "agent_id": {"handle": HANDLES[GPU]}, "queue_id": {"handle": each.queue},
                "kernel_id": each.kernel + 1, "dispatch_id": number,
            },
        }  # fmt: skip
        if values:
            yield {"thread_id": MAIN, "arch_vgpr_count": 32, "dispatch_data": data, "records": values}


def counters_csv(run: RocprofRun, *names: str, pid: int = PID) -> str:
    """Return the table of these counters, else of all: a line per counter and dispatch."""
    columns = [
        *("Correlation_Id", "Dispatch_Id", "Agent_Id", "Queue_Id", "Process_Id", "Thread_Id", "Grid_Size"),
        *("Kernel_Id", "Kernel_Name", "Workgroup_Size", "LDS_Block_Size", "Scratch_Size", "VGPR_Count"),
        *("Accum_VGPR_Count", "SGPR_Count", "Counter_Name", "Counter_Value", "Start_Timestamp", "End_Timestamp"),
    ]
    lines = [",".join(f'"{column}"' for column in columns)]
    for name in names or counter_names(run):
        for number, each in enumerate(run.dispatches, 1):
            if name in each.counters:
                lines.append(
                    f'{each.correlation},{number},"Agent {GPU}",{each.queue},{pid},{pid},1000,{each.kernel + 1},'
                    f'"{KERNELS[each.kernel]}",256,4096,0,32,4,32,"{name}",{each.counters[name]:f},'
                    f"{BOOT + each.start},{BOOT + each.end}"
                )
    return "\n".join(lines) + "\n"


def _record(domain: str, operation: str, start: int, end: int, correlation: int) -> dict[str, Any]:
    return {
        "kind": KINDS.index(domain),
        "operation": DOMAINS[domain].index(operation),
        "correlation_id": {"internal": correlation, "external": 0},
        "start_timestamp": BOOT + start,
        "end_timestamp": BOOT + end,
    }


def rocprof_json(run: RocprofRun, **options: Any) -> bytes:
    """Return JSON indented as the tool does: by one blank."""
    return json.dumps(document(run, **options), indent=1).encode()


def chrome(run: RocprofRun) -> bytes:
    """Return the events that PyTorch's profiler would have written of the same run."""
    events: list[dict[str, Any]] = []

    def add(
        category: str,
        name: str,
        pid: int,
        tid: int,
        span: RocprofCall | RocprofDispatch | RocprofCopy,
        **args: Any,
    ) -> None:
        joined = {"correlation": span.correlation, **args}
        start, duration = BOOT + span.start, span.end - span.start
        ts, dur = f"{start // 1000}.{start % 1000:03}", f"{duration // 1000}.{duration % 1000:03}"
        common = {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "args": joined}
        events.append({**common, "ts": f"<{ts}>", "dur": f"<{dur}>"})

    for call in run.calls:
        word, _, number = (call.message or "").partition(" ")
        label = f"ProfilerStep#{number}" if word == "step" else call.message
        arguments = {"message": call.message} if call.message is not None else {}
        add(CATEGORIES[call.domain], label or call.name, PID, call.tid, call, **arguments)
    for count, each in enumerate(run.dispatches, 1):
        blocks = [-(-items // size) for items, size in zip(each.grid, each.block, strict=True)]
        place = {"device": GPU_INDEX, "stream": each.stream}
        shape = {"grid": blocks, "block": [*each.block]}
        add("kernel", KERNELS[each.kernel], GPU_INDEX, each.stream, each, **place, **shape,
            **{"dispatch id": count, "shared memory": 4096, "scratch memory": 0})  # fmt: skip
    for copy in run.copies:
        name = "Memcpy HtoD (Host -> Device)" if copy.to_device else "Memcpy DtoH (Device -> Host)"
        add(
            "gpu_memcpy", name, GPU_INDEX, copy.stream, copy, device=GPU_INDEX, stream=copy.stream, bytes=copy.size
        )
    gpu = {
        "id": GPU_INDEX,
        "name": "AMD Instinct MI300X",
        "totalGlobalMem": 192 << 30,
        "numSms": 304,
        "warpSize": 64,
    }
    text = json.dumps(
        {
            "schemaVersion": 1,
            "rocprofiler": "rocprofv3",
            "deviceProperties": [gpu],
            "distributedInfo": {"backend": None, "rank": 3, "world_size": 8},
            "traceEvents": events,
        }
    )
    return text.replace('"<', "").replace('>"', "").encode()
