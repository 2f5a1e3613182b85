"""A small simulated inference engine: what it did is known, so that an analysis of its trace can be judged.

    trace, truth = serve(Workload(faults={20: ("scheduler", 5000)}))

Requests arrive at random and have prompts and outputs of random length. Each turn of the loop schedules (chunked
prefill mixed with decodes, or prefills first), prepares, launches, waits for the tokens and handles them. Kernels
take what the law says: fixed + prompt tokens + decoding requests + KV tokens, with a scatter. Times are in µs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.support.traces import document, read
from torch_tb_profiler.model.trace import Trace

FLASH = "flash::flash_fwd_{}<Flash_fwd_kernel_traits<128, 64>>"
DECODE_KERNEL, PREFILL_KERNEL = FLASH.format("splitkv_kernel"), FLASH.format("kernel")
SAMPLER = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>>>"


@dataclass(frozen=True)
class Workload:
    """What the engine serves and how.

    faults       iteration -> (what the host does, µs)
    graph_sizes  decodes are padded to these sizes
    slower       (iteration from which on the device is slower, by how many times)
    prefix       (share of the requests, tokens): so many of their prompts begin with tokens in the KV cache, which
                 are attended to but not computed
    """

    seed: int = 1
    form: str = "vllm_sums"
    requests: int = 40
    every: float = 6000
    prompts: tuple[int, int] = (100, 1500)
    outputs: tuple[int, int] = (12, 60)
    budget: int = 1024
    prefill_first: bool = False
    kv_capacity: int = 10**6
    law: tuple[float, float, float, float] = (900, 0.42, 30, 0.021)
    noise: float = 0.01
    scopes: bool = True
    sampling: float = 60
    lull: tuple[int, float] | None = None
    faults: Mapping[int, tuple[str, float]] = field(default_factory=dict)
    graph_sizes: tuple[int, ...] = ()
    slower: tuple[int, float] | None = None
    prefix: tuple[float, int] | None = None


@dataclass
class Request:
    arrival: float
    prompt: int
    output: int
    needed: int
    """Tokens that must be in the KV cache before it decodes: after a preemption those that it made as well."""
    cached: int = 0
    made: int = 0
    shared: int = 0
    """Tokens of its prompt that are in the KV cache as it starts."""


@dataclass
class Truth:
    """What the engine did: iterations, and idle time of the device by what the host did in it, in µs."""

    iterations: list[dict[str, Any]] = field(default_factory=list)
    idle: dict[str, float] = field(default_factory=dict)


def label(form: str, prefills: list[tuple[Request, int]], decodes: list[Request]) -> str:
    """Return the annotation of a batch, in the form of an engine."""
    resumed = [(request, count) for request, count in prefills if request.made]
    fresh = [(request, count) for request, count in prefills if not request.made]
    context = [(count, request.cached + count) for request, count in fresh]
    running = [(1, request.cached + 1) for request in decodes]
    running += [(count, request.cached + count) for request, count in resumed]

    def sums(batch: list[tuple[int, int]]) -> tuple[int, int, int, int]:
        squares, products = sum(q * q for q, _ in batch), sum(q * k for q, k in batch)
        return sum(q for q, _ in batch), sum(k for _, k in batch), squares, products

    c, g = sums(context), sums(running)
    if form == "vllm_sums":
        text = "sq%dsk%dsqsq%dsqsk%d"
        total = c[0] + g[0]
        return f"execute_{total}_context_{len(context)}({text % c})_generation_{len(running)}({text % g})"
    if form == "vllm":
        return f"execute_context_{len(context)}({c[0]})_generation_{len(running)}({g[0]})"
    kind = "MIXED" if context and running else "EXTEND" if context else "DECODE"
    size = f"bs={len(context) + len(running)}" + (f" c={len(context)} g={len(running)}" if kind == "MIXED" else "")
    keys = "{0}_sq=%d {0}_sk=%d {0}_sqsq=%d {0}_sqsk=%d"
    parts = [keys.format(name) % each for name, each, batch in (("c", c, context), ("g", g, running)) if batch]
    return f"step[{kind} {size} {' '.join(parts)}]"


def serve(load: Workload) -> tuple[Trace, Truth]:
    """Run the engine until all requests are served."""
    engine = _Engine(load)
    return read(engine.run()), engine.truth


def serving_document(load: Workload) -> bytes:
    """Return the bytes of the trace file of a run."""
    return document(_Engine(load).run())


def several_engines(*loads: Workload) -> Trace:
    """Run engines in one process at the same time, each on a thread and a stream of its own."""
    events = []
    for number, load in enumerate(loads):
        for each in _Engine(load).run():
            args, shift = dict(each["args"]), 100 * number
            for key, more in (("correlation", 10_000 * shift), ("stream", shift)):
                if key in args:
                    args[key] += more
            events.append({**each, "tid": each["tid"] + shift, "args": args})
    return read(sorted(events, key=lambda event: event["ts"]))


def without_device(load: Workload) -> Trace:
    """Return what the host alone recorded of an engine, without the calls of a device."""
    hidden = ("kernel", "gpu_memcpy", "cuda_runtime")
    return read([event for event in _Engine(load).run() if event["cat"] not in hidden])


class _Engine:
    def __init__(self, load: Workload) -> None:
        self.load, self.random, self.truth = load, Random(load.seed), Truth()
        self.events: list[dict[str, Any]] = []
        self.now, self.device, self.calls = 1000.0, 1000.0, 0
        self.activity: list[tuple[str, float, float]] = []
        time, self.queue = 1000.0, []
        for number in range(load.requests):
            time += self.random.expovariate(1 / load.every)
            time += load.lull[1] if load.lull and load.lull[0] == number else 0
            prompt, output = self.random.randint(*load.prompts), self.random.randint(*load.outputs)
            shared = 0
            if load.prefix is not None and self.random.random() < load.prefix[0]:
                shared = min(load.prefix[1], prompt - 1)  # the last token is computed in any case
            self.queue.append(Request(time, prompt, output, needed=prompt, cached=shared, shared=shared))
        self.running: list[Request] = []

    def run(self) -> list[dict[str, Any]]:
        while self.queue or self.running:
            if not self.running and self.queue[0].arrival > self.now:
                self.host("idle", self.queue[0].arrival - self.now + 1)
                continue
            kind, extra = self.load.faults.get(len(self.truth.iterations), ("", 0.0))
            self.host("scheduler", 150 + extra * (kind == "scheduler"), "schedule: allocate_slots")
            prefills, decodes = self.batch()
            self.iterate(prefills, decodes, kind, extra)
        return sorted(self.events, key=lambda event: event["ts"])

    def host(self, activity: str, time: float, name: str = "", category: str = "user_annotation") -> None:
        self.activity.append((activity, self.now, self.now + time))
        if name and (self.load.scopes or category != "user_annotation"):
            self.event(category, name, self.now, time - 1)
        self.now += time

    def event(self, category: str, name: str, start: float, time: float, **args: Any) -> None:
        pid = 0 if category in ("kernel", "gpu_memcpy") else 1
        args = {"device": 0, "stream": 7, **args} if pid == 0 else args
        thread = {"pid": pid, "tid": 7 if pid == 0 else 1}
        self.events.append(
            {"ph": "X", "cat": category, "name": name, "ts": start, "dur": time, "args": args, **thread}
        )

    def batch(self) -> tuple[list[tuple[Request, int]], list[Request]]:
        load = self.load
        decodes = [each for each in self.running if each.cached >= each.needed]
        arrived = [each for each in self.queue if each.arrival <= self.now]
        used = sum(max(each.cached, each.needed) for each in self.running)
        while used + len(decodes) > load.kv_capacity and len(decodes) > 1:
            newest = decodes.pop()
            used -= max(newest.cached, newest.needed)
            newest.cached, newest.needed = 0, newest.prompt + newest.made
            self.running.remove(newest)
            self.queue.insert(0, newest)
            arrived = []
        left = load.budget - (0 if load.prefill_first else len(decodes))
        prefills = []
        for request in [each for each in self.running if each.cached < each.needed] + arrived:
            tokens = min(left, request.needed - request.cached)
            arrives = request not in self.running
            if tokens <= 0 or (arrives and used + request.needed > load.kv_capacity):
                break
            if arrives:
                used += request.needed
                self.queue.remove(request)
                self.running.append(request)
            prefills.append((request, tokens))
            left -= tokens
        return prefills, [] if prefills and load.prefill_first else decodes

    def iterate(
        self, prefills: list[tuple[Request, int]], decodes: list[Request], kind: str, extra: float
    ) -> None:
        load, start, first = self.load, self.now, self.device
        prompt, kv = sum(count for _, count in prefills), sum(each.cached + 1 for each in decodes)
        kv += sum(request.cached + count for request, count in prefills)
        fixed, per_token, per_request, per_kv = load.law
        scatter = self.random.gauss(1, load.noise)
        if load.slower and len(self.truth.iterations) >= load.slower[0]:
            scatter *= load.slower[1]
        places = len(decodes)
        if load.graph_sizes and not prefills:
            places = next(size for size in load.graph_sizes if size >= places)
        rest = (0.9 * fixed + per_token * prompt + per_request * places) * scatter
        attention = (0.1 * fixed + per_kv * kv) * scatter
        name = label(load.form, prefills, decodes)
        if kind == "network":
            self.host("network", extra, "kv_connector: wait_for_layer_load", "cpu_op")
        self.host("launch", 100, "gpu_model_runner: preprocess")
        names = ([PREFILL_KERNEL] if prefills else []) + ([DECODE_KERNEL] if decodes else [])
        kernels = [("gemm", 0.97 * rest), ("vllm::reshape_and_cache_flash_kernel<half>", 0.01 * rest)]
        kernels += [(each, attention / len(names)) for each in names]
        eager = bool(prefills)
        if not eager:
            self.launch("cudaGraphLaunch", kernels)
        else:
            for kernel in kernels:
                self.launch("cudaLaunchKernel", [kernel])
        if load.form != "none":
            self.event("user_annotation", name, start, self.now - start)
        self.launch("cudaLaunchKernel", [(SAMPLER, 0.02 * rest)])
        began = next(e["ts"] for e in self.events[::-1] if e["cat"] == "kernel" and e["name"] == "gemm")
        self.idle(first, began)
        if self.device > self.now:
            self.host("sampling_sync", self.device - self.now + 5, "cudaEventSynchronize", "cuda_runtime")
        slow = extra if kind == "sampling" else 0
        self.host("sampling_sync", load.sampling + slow, "gpu_model_runner: bookkeep")
        phase = "mixed" if prefills and decodes else "prefill" if prefills else "decode"
        self.truth.iterations.append(
            {"phase": phase, "prompt": prompt, "decodes": len(decodes), "kv": kv, "busy": rest + attention}
        )
        for request, count in prefills:
            request.cached += count
            request.made += request.cached >= request.needed
        for request in decodes:
            request.cached += 1
            request.made += 1
        self.running = [each for each in self.running if each.made < each.output]

    def launch(self, call: str, kernels: list[tuple[str, float]]) -> None:
        self.calls += 1
        self.event("cuda_runtime", call, self.now + 1, 6, correlation=self.calls)
        at = max(self.device + 0.5, self.now + 6)
        for name, time in kernels:
            self.event("kernel", name, at, time, correlation=self.calls)
            self.device = at + time
            at = self.device + 0.5
        self.host("launch", 8)

    def idle(self, begin: float, end: float) -> None:
        if not self.truth.iterations or end - begin < 20:
            return
        for activity, start, stop in self.activity[-12:]:
            shared = min(stop, end) - max(start, begin)
            if shared > 0:
                self.truth.idle[activity] = self.truth.idle.get(activity, 0.0) + shared
