"""One process with its GPU: threads that call and launch, streams that run in order, an allocator; all recorded.

Times are nanoseconds since the start of the recording.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from simulation.hardware import DEVICE, Kernel

EPOCH_NS = 1_760_000_000_000_000_000
COMPUTE, COMMUNICATION = 7, 20
MAIN, AUTOGRAD = 0, 1
LAUNCH_NS, RETURN_NS = 4_000, 6_000
DTYPES = {"bf16": "c10::BFloat16", "int64": "long int", "float": "float"}
RUNTIME_CALLS = {
    "cudaLaunchKernel": 211,
    "cudaLaunchKernelExC": 430,
    "cudaMemcpyAsync": 41,
    "cudaFree": 22,
    "cudaStreamSynchronize": 131,
    "cudaEventRecord": 135,
    "cudaStreamWaitEvent": 147,
}


class Process:
    """A rank. Host calls nest by `with`; the clock of the thread that is at work is `now`."""

    def __init__(self, rank: int, seed: int) -> None:
        self.rank, self.pid = rank, 4000 + rank
        self.events: list[dict[str, Any]] = []
        self.free = {COMPUTE: 0.0, COMMUNICATION: 0.0}
        """Stream -> when its last work ends."""
        self.allocated = self.reserved = 0
        self._random = random.Random(seed)
        self._clocks = {MAIN: 0.0, AUTOGRAD: 0.0}
        self._thread = MAIN
        self._correlation, self._external, self._python, self._address = 0, 0, 0, 0x7F20_0000_0000
        self._operators: list[int] = []
        self._frames: list[int] = []
        self._blocks: dict[int, int] = {}

    @property
    def now(self) -> float:
        return self._clocks[self._thread]

    @now.setter
    def now(self, value: float) -> None:
        self._clocks[self._thread] = value

    @property
    def tid(self) -> int:
        return self.pid + 60 * self._thread

    def spend(self, nanoseconds: float) -> None:
        """Spend time on the host, never twice the same."""
        self.now += nanoseconds * self._random.lognormvariate(0, 0.08)

    @contextmanager
    def thread(self, thread: int) -> Iterator[None]:
        """Run the body on another thread, which starts now, while the calling thread waits."""
        caller, operators, frames = self._thread, self._operators, self._frames
        self._clocks[thread] = max(self._clocks[thread], self.now)
        self._thread, self._operators, self._frames = thread, [], []
        yield
        self._clocks[caller] = self.now
        self._thread, self._operators, self._frames = caller, operators, frames

    @contextmanager
    def slice(self, name: str, category: str, cost: float = 0, **arguments: object) -> Iterator[dict[str, Any]]:
        """Record a host event around the body; half of its own `cost` comes before that."""
        event: dict[str, Any] = {"ph": "X", "cat": category, "name": name, "pid": self.pid, "tid": self.tid}
        self.events.append(event)
        began = self.now
        self.spend(cost / 2)
        yield event
        self.spend(cost / 2)
        event |= {"ts": micros(began), "dur": micros(round(self.now) - round(began)), "args": arguments}

    @contextmanager
    def operator(
        self,
        name: str,
        shapes: list[list[int]] | None = None,
        kind: str = "bf16",
        cost: float = 9_000,
        **more: object,
    ) -> Iterator[None]:
        """Record an operator with the shapes of its inputs around the body."""
        self._external += 1
        arguments: dict[str, object] = {"External id": self._external, **more}
        if shapes is not None:
            kinds = [DTYPES[kind] if shape else "Scalar" for shape in shapes]
            arguments |= {"Input Dims": shapes, "Input type": kinds}
        self._operators.append(self._external)
        with self.slice(name, "cpu_op", cost, **arguments):
            yield
        self._operators.pop()

    @contextmanager
    def annotation(self, name: str, cost: float = 4_000) -> Iterator[None]:
        self._external += 1
        with self.slice(name, "user_annotation", cost, **{"External id": self._external}):
            yield

    @contextmanager
    def frame(self, name: str, module: int | None = None, cost: float = 3_000) -> Iterator[None]:
        """Record a Python function, or a module (`nn.Module: <class>_<number>`), around the body."""
        self._python += 1
        arguments: dict[str, object] = {"Python parent id": self._frames[-1] if self._frames else None}
        arguments["Python id"] = self._python
        if module is not None:
            arguments["Python module id"] = module
        self._frames.append(self._python)
        with self.slice(name, "python_function", cost, **arguments):
            yield
        self._frames.pop()

    def runtime(self, name: str, nanoseconds: float) -> int:
        """Record a call of the CUDA runtime and return its correlation."""
        self._correlation += 1
        arguments = {"cbid": RUNTIME_CALLS[name], "correlation": self._correlation, **self._external_id()}
        with self.slice(name, "cuda_runtime", nanoseconds, **arguments):
            pass
        return self._correlation

    def launch(self, kernel: Kernel, stream: int = COMPUTE) -> None:
        began = self.now
        name = "cudaLaunchKernelExC" if kernel.name.startswith("nvjet") else "cudaLaunchKernel"
        correlation = self.runtime(name, LAUNCH_NS)
        duration = kernel.duration * self._random.lognormvariate(0, 0.006)
        begin = max(began + 3_000, self.free[stream] + 800)
        self._on_device(kernel.name, "kernel", begin, duration, stream, correlation, **kernel.arguments())

    def copy(self, kind: str, nbytes: int, bytes_per_ns: float) -> None:
        """Copy between host and device; `kind` as CUPTI names it, as in "HtoD (Pinned -> Device)"."""
        began = self.now
        correlation = self.runtime("cudaMemcpyAsync", LAUNCH_NS)
        duration = 1_200 + nbytes / bytes_per_ns
        bandwidth = {"bytes": nbytes, "memory bandwidth (GB/s)": nbytes / duration}
        begin = max(began + 3_000, self.free[COMPUTE] + 800)
        self._on_device(f"Memcpy {kind}", "gpu_memcpy", begin, duration, COMPUTE, correlation, **bandwidth)

    def collective(self, name: str, arguments: dict[str, object]) -> tuple[dict[str, Any], float]:
        """Launch a kernel whose end the other ranks decide: its event without times, and when it could begin."""
        began = self.now
        self.runtime("cudaEventRecord", 1_000)
        self.runtime("cudaStreamWaitEvent", 1_000)
        correlation = self.runtime("cudaLaunchKernelExC", LAUNCH_NS)
        fill = Kernel(name, 0, 0, 1, 544, 24, registers=96, shared_memory=82_240, occupancy=4).arguments()
        ready = max(began + 5_000, self.free[COMPUTE])
        event = self._device_event(name, "kernel", COMMUNICATION, correlation, **fill, **arguments)
        return event, ready

    def finish_collective(self, event: dict[str, Any], begin: float, end: float) -> None:
        event |= {"ts": micros(begin), "dur": micros(round(end) - round(begin))}
        self.free[COMMUNICATION] = end

    def wait_for_communication(self) -> None:
        """Let the compute stream go on when the collectives are done; the host does not wait."""
        self.runtime("cudaStreamWaitEvent", 1_000)
        self.free[COMPUTE] = max(self.free.values())

    def synchronize(self) -> None:
        """Make the host wait for the compute stream."""
        self._block("cudaStreamSynchronize", self.free[COMPUTE], RETURN_NS)

    def free_device_memory(self, nanoseconds: float) -> None:
        """Make the host wait for all streams, and then for the driver."""
        self._block("cudaFree", max(self.free.values()), nanoseconds)

    def _block(self, name: str, until: float, then: float) -> None:
        self._correlation += 1
        with self.slice(
            name,
            "cuda_runtime",
            cbid=RUNTIME_CALLS[name],
            correlation=self._correlation,
            **self._external_id(),
        ):
            self.now = max(self.now, until) + then

    def allocate(self, nbytes: int) -> int:
        """Allocate a block from the caching allocator and return its address."""
        self._address += nbytes
        self._blocks[self._address] = nbytes
        self._change(self._address, nbytes)
        return self._address

    def release(self, address: int) -> None:
        self._change(address, -self._blocks.pop(address))

    def hold(self, nbytes: int) -> None:
        """Hold memory that was allocated before the recording."""
        self.allocated += nbytes
        self.reserved = max(self.reserved, self.allocated)

    def write(self, path: Path, ranks: int) -> None:
        group = {"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "pg_size": ranks}
        labels = [
            _metadata("process_name", self.pid, 0, name="python"),
            _metadata("process_labels", self.pid, 0, labels="CPU"),
            _metadata("process_name", self.rank, 0, name="python"),
            _metadata("process_labels", self.rank, 0, labels=f"GPU {self.rank}"),
            _metadata("thread_name", self.pid, self.pid, name=f"thread {self.pid} (python)"),
            _metadata("thread_name", self.pid, self.pid + 60, name=f"thread {self.pid + 60} (pt_autograd_0)"),
            *(_metadata("thread_name", self.rank, stream, name=f"stream {stream}") for stream in self.free),
        ]
        document = {
            "schemaVersion": 1,
            "simulated": "Computed by examples/simulate_job.py; nothing here was measured.",
            "deviceProperties": [{"id": rank, **DEVICE} for rank in range(ranks)],
            "distributedInfo": {
                "backend": "nccl",
                "rank": self.rank,
                "world_size": ranks,
                "pg_count": 1,
                "pg_config": [{**group, "ranks": list(range(ranks))}],
                "nccl_version": "2.26.2",
            },
            "record_shapes": 1,
            "profile_memory": 1,
            "with_stack": 1,
            "with_modules": 1,
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": EPOCH_NS,
            "traceEvents": [*labels, *self.events],
        }
        content = json.dumps(document, separators=(",", ":")).encode()
        path.write_bytes(gzip.compress(content, mtime=0))

    def _on_device(
        self,
        name: str,
        category: str,
        begin: float,
        duration: float,
        stream: int,
        correlation: int,
        **more: object,
    ) -> None:
        event = self._device_event(name, category, stream, correlation, **more)
        event |= {"ts": micros(begin), "dur": micros(round(begin + duration) - round(begin))}
        self.free[stream] = begin + duration

    def _device_event(
        self, name: str, category: str, stream: int, correlation: int, **more: object
    ) -> dict[str, Any]:
        arguments = {"device": self.rank, "context": 1, "stream": stream, "correlation": correlation}
        event: dict[str, Any] = {"ph": "X", "cat": category, "name": name, "pid": self.rank, "tid": stream}
        event["args"] = {**self._external_id(), **arguments, **more}
        self.events.append(event)
        return event

    def _external_id(self) -> dict[str, int]:
        return {"External id": self._operators[-1]} if self._operators else {}

    def _change(self, address: int, nbytes: int) -> None:
        self.allocated += nbytes
        self.reserved = max(self.reserved, -(-self.allocated // 2**21) * 2**21)
        arguments = {
            "Total Reserved": self.reserved,
            "Total Allocated": self.allocated,
            "Bytes": nbytes,
            "Addr": address,
            "Device Id": self.rank,
            "Device Type": 1,
        }
        event = {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "ts": micros(self.now)}
        self.events.append({**event, "pid": self.pid, "tid": self.tid, "args": arguments})


def micros(nanoseconds: float) -> float:
    return round(nanoseconds) / 1000


def _metadata(kind: str, pid: int, tid: int, **arguments: object) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "ts": 0, "args": arguments}
