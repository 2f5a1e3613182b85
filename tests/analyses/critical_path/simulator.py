"""A training loop run by a clock of its own: host threads, streams, a bounded queue, events. It knows no schedule.

Every part draws its jitter from a stream of random numbers that does not depend on the knobs, so that a run with a
knob turned is the same program with that part faster.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from random import Random
from typing import Any


@dataclass(frozen=True)
class Knobs:
    """Factors on parts of the program; without `sync` nothing waits for the device."""

    data: float = 1
    host: float = 1
    kernel: float = 1
    communication: float = 1
    mul: float = 1
    sync: bool = True


@dataclass
class Machine:
    """A process and its device; times in ns."""

    random: Random
    capacity: int
    events: list[dict[str, Any]] = field(default_factory=list)
    now: int = 0
    thread: int = 1
    correlation: int = 0
    last_end: dict[int, int] = field(default_factory=dict)
    starts: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    held: dict[int, int] = field(default_factory=dict)

    def _vary(self, ns: float) -> int:
        return max(1, int(ns * (0.85 + 0.3 * self.random.random())))

    def work(self, ns: float, factor: float = 1) -> None:
        self.now += int(self._vary(ns) * factor)

    def mark(self, category: str, name: str, begin: int) -> None:
        self._event(category, name, begin, self.now, pid=9, tid=self.thread, args={})

    def _event(self, category: str, name: str, begin: int, end: int, **more: Any) -> None:
        shape = {"ph": "X", "cat": category, "name": name, "ts": begin / 1000, "dur": (end - begin) / 1000}
        self.events.append({**shape, **more})

    def _call(self, name: str, begin: int) -> None:
        self.correlation += 1
        args = {"correlation": self.correlation}
        self._event("cuda_runtime", name, begin, self.now, pid=9, tid=self.thread, args=args)

    def launch(self, stream: int, ns: float, name: str, factor: float = 1, host: float = 1) -> None:
        begin = self.now
        waiting = sorted(start for start in self.starts[stream][-self.capacity - 2 :] if start > begin)
        if len(waiting) >= self.capacity:
            self.now = waiting[len(waiting) - self.capacity]
        self.work(4_500, host)
        self._call("cudaLaunchKernel", begin)
        start = max(
            self.now + self._vary(3_500),
            self.last_end.get(stream, 0) + self._vary(900),
            self.held.pop(stream, 0) + self._vary(1_500),
        )
        end = start + max(1, int(self._vary(ns) * factor))
        args = {"correlation": self.correlation, "device": 0, "stream": stream}
        self._event("kernel", name, start, end, pid=0, tid=stream, args=args)
        self.last_end[stream] = end
        self.starts[stream].append(start)

    def synchronize(self, stream: int, waits: bool) -> None:
        begin = self.now
        self.work(2_500)
        wake = self._vary(7_000)
        end = self.last_end.get(stream, 0)
        if waits and end > self.now:
            self.now = end + wake
        self._call("cudaStreamSynchronize", begin)

    def wait(self, stream: int, other: int) -> None:
        """Make the next launch on `stream` start after what runs on `other` now."""
        begin = self.now
        self.work(1_000)
        self.held[stream] = max(self.held.get(stream, 0), self.last_end.get(other, 0))
        self._call("cudaStreamWaitEvent", begin)


def simulate(seed: int, knobs: Knobs = Knobs()) -> tuple[list[dict[str, Any]], int]:
    """Return (events, ns from the first step's begin to the end of everything) of a random program."""
    shape = Random(seed)
    machine = Machine(Random(seed + 1), shape.choice([32, 1024, 1024]))
    layers = [(shape.randint(2, 6), shape.choice([0.3, 1, 1, 3])) for _ in range(shape.randint(5, 20))]
    operator, kernel = shape.choice([6, 12, 25, 40]) * 1000, shape.choice([5, 15, 60, 200]) * 1000
    data = shape.choice([0, 200, 2000, 8000]) * 1000
    reduces, reads, backward = shape.random() < 0.6, shape.random() < 0.6, shape.random() < 0.7

    def layer(count: int, size: float) -> None:
        for place in range(count):
            name = "aten::addmm" if place == 0 else "aten::mul"
            factor = knobs.host * (knobs.mul if place else 1)
            begin = machine.now
            machine.work(operator * 0.6, factor)
            machine.launch(7, kernel * size * (1 if place else 4), name + "_kernel", knobs.kernel, factor)
            machine.work(operator * 0.4, factor)
            machine.mark("cpu_op", name, begin)

    for number in range(4):
        step = machine.now
        if data:
            machine.work(data, knobs.data)
            machine.mark("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", step)
        for count, size in layers:
            layer(count, size)
            machine.work(2_000, knobs.host)
        machine.work(8_000, knobs.host)
        if backward:
            machine.thread = 2
            machine.work(20_000)
        for place, (count, size) in enumerate(reversed(layers)):
            begin = machine.now
            layer(count, size * 2)
            machine.mark("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", begin)
            if reduces and place % 4 == 3:
                machine.wait(20, 7)
                machine.launch(20, kernel * size * 6, "ncclDevKernel_AllReduce", knobs.communication, knobs.host)
        if backward:
            machine.thread = 1
            machine.work(15_000)
        if reduces and len(layers) >= 4:
            machine.wait(7, 20)
        layer(4, 1)
        if reads:
            begin = machine.now
            machine.work(2_000, knobs.host)
            machine.launch(7, 1_500, "copy", 1, knobs.host)
            machine.synchronize(7, knobs.sync)
            machine.mark("cpu_op", "aten::_local_scalar_dense", begin)
        machine.work(5_000, knobs.host)
        machine.mark("user_annotation", f"ProfilerStep#{number}", step)
        machine.work(800)
    return machine.events, max(machine.now - 800, *machine.last_end.values())
