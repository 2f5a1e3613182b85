"""Recordings of training steps drawn at will: trees of operators with known times, some launching kernels.

Op("forward", 40, [Op("aten::mm", 10, kernel=100)])     us; host time is the operator's own, without its parts
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.traces import document, read_bytes
from torch_tb_profiler.model.trace import Trace

LAUNCH = 2.0
"""us of a launch, on top of the operator's own time."""


@dataclass(frozen=True)
class Op:
    """An operator: name, own host time in us, those inside it, time of the kernel that it launches (0: none), and
    its arguments."""

    name: str
    own: float
    inside: Sequence[Op] = field(default_factory=tuple)
    kernel: float = 0.0
    category: str = "cpu_op"
    args: Mapping[str, Any] = field(default_factory=dict)


Jitter = Callable[[int], float]
"""Factor of a time; the argument is the step."""


class _Tape:
    def __init__(self, jitter: Jitter) -> None:
        self.events: list[dict[str, Any]] = []
        self.jitter, self.now, self.free, self.step, self.launches = jitter, 0, 0, 0, 0

    def record(self, op: Op) -> None:
        begin, row = self.now, len(self.events)
        self.events.append({})
        own = self._ns(op.own)
        self.now += own // 2
        for each in op.inside:
            self.record(each)
        if op.kernel:
            self._launch(op)
        self.now += own - own // 2
        self.events[row] = self._slice(op.category, op.name, begin, self.now - begin, 1, 1, {**op.args})

    def _launch(self, op: Op) -> None:
        self.launches += 1
        args = {"correlation": self.launches}
        length = self._ns(op.kernel)
        begin, self.now = self.now, self.now + round(LAUNCH * 1000)
        self.events.append(self._slice("cuda_runtime", "cudaLaunchKernel", begin, self.now - begin, 1, 1, args))
        start = max(self.now, self.free)
        self.free = start + length
        kernel = {**args, "device": 0, "stream": 7}
        self.events.append(self._slice("kernel", f"{op.name} kernel", start, length, 0, 7, kernel))

    def _ns(self, us: float) -> int:
        return round(us * 1000 * self.jitter(self.step))

    @staticmethod
    def _slice(
        category: str, name: str, begin: int, length: int, pid: int, tid: int, args: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        times = {"ts": begin / 1000, "dur": length / 1000}
        return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, **times, "args": args or {}}


def write_recording(ops: Sequence[Op], steps: int, jitter: Jitter = lambda step: 1.0, **metadata: Any) -> bytes:
    """Return the bytes of a trace file: the same operators in every step, each time multiplied by the jitter."""
    tape = _Tape(jitter)
    for step in range(steps):
        tape.step = step
        begin, row = tape.now, len(tape.events)
        tape.events.append({})
        tape.now += 5_000
        for op in ops:
            tape.record(op)
        tape.now = max(tape.now, tape.free) + 5_000
        tape.events[row] = tape._slice("user_annotation", f"ProfilerStep#{step}", begin, tape.now - begin, 1, 1)
    return document(tape.events, **metadata)


def record(ops: Sequence[Op], steps: int, jitter: Jitter = lambda step: 1.0) -> Trace:
    """Return the same as a Trace."""
    return read_bytes(write_recording(ops, steps, jitter))


_ENGINE = "autograd::engine::evaluate_function:~"

TRAINING = f"""
    host   python_function  nn.Module:~Net_0     0  100  Python module id=0
    host   cpu_op           aten::view           5   10
    host   cpu_op           aten::alias          6    4
    host   python_function  nn.Module:~Linear_0 20   40  Python module id=0
    host   cpu_op           aten::linear        25   30
    host   cpu_op           aten::addmm         28   20  Sequence number=1
    host   cuda_runtime     cudaLaunchKernel    30    5  correlation=1
    host   cuda_runtime     cudaLaunchKernel    70    5  correlation=2
    host   cuda_runtime     cudaLaunchKernel   110    5  correlation=3
    host2  cpu_op           {_ENGINE}Addmm      400   80
    host2  cpu_op           AddmmBackward0     410   40  Sequence number=1 Fwd thread id=1
    host2  cuda_runtime     cudaLaunchKernel   420   10  correlation=4
    gpu0   kernel           gemm               200   50  correlation=1 stream=7
    gpu0   kernel           triton             300    7  correlation=2 stream=7
    gpu0   kernel           outside            320    3  correlation=3 stream=7
    gpu0   kernel           gemm_backward      500   60  correlation=4 stream=7
    gpu0   kernel           stray              700    2  stream=7
    """
"""A picture for `draw`: a model of two modules, forward and backward, on a host and a GPU."""
