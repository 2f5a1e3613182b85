"""Simulates the traces of a decoder that replays a captured graph, and of the capture: nothing is measured.

    python examples/simulate_graph_replay.py --logdir samples

In the trace of the replays no operator, module or line is recorded; Origins finds all of them in the capture. One
step in eight replays a graph whose capture is not there, and stays unknown.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from pathlib import Path
from typing import Any, NamedTuple

EPOCH_US = 1_760_000_000_000_000
HOST, DEVICE = 4242, 0
BATCH, WIDTH = 16, 4096


HIDDEN, PROMPT, CONTEXT = 7168, 512, 2048

ROWS = [BATCH, WIDTH]
SHARED = [WIDTH]


class Launch(NamedTuple):
    """A kernel, how long it runs in µs, the operator, module and line that launch it, and shapes of its inputs."""

    kernel: str
    duration: float
    operator: str
    module: str
    line: int
    shapes: list[list[int]]


LAYER = (
    Launch("rmsnorm2d_fwd_bf16_4096", 3.1, "aten::rms_norm", "RMSNorm_0", 21, [ROWS, [], SHARED]),
    Launch(
        "Cijk_Alik_Bljk_BBS_BH_MT64x64x64_QKV", 14.2, "aten::linear", "Linear_0", 34, [ROWS, [6144, WIDTH], []]
    ),
    Launch(
        "paged_attention_ll4mi_QKV_bf16_128",
        22.5,
        "vllm::unified_attention",
        "Attention_0",
        37,
        [[BATCH, 32, 128]] * 3,
    ),
    Launch("Cijk_Alik_Bljk_BBS_BH_MT64x32x64", 8.4, "aten::linear", "Linear_1", 38, [ROWS, [WIDTH, WIDTH], []]),
    Launch(
        "vectorized_elementwise_kernel<8, CUDAFunctor_add<c10::BFloat16>>",
        2.2,
        "aten::add",
        "Block_0",
        47,
        [ROWS, ROWS, []],
    ),
    Launch("rmsnorm2d_fwd_bf16_4096", 3.1, "aten::rms_norm", "RMSNorm_1", 21, [ROWS, [], SHARED]),
    Launch(
        "Cijk_Alik_Bljk_BBS_BH_MT128x64x64",
        24.8,
        "aten::linear",
        "Linear_2",
        52,
        [ROWS, [2 * HIDDEN, WIDTH], []],
    ),
    Launch("act_and_mul_kernel_silu_bf16", 3.4, "_C::silu_and_mul", "MLP_0", 53, [[BATCH, HIDDEN]]),
    Launch(
        "Cijk_Alik_Bljk_BBS_BH_MT64x128x64",
        19.7,
        "aten::linear",
        "Linear_3",
        54,
        [[BATCH, HIDDEN], [WIDTH, HIDDEN], []],
    ),
    Launch(
        "vectorized_elementwise_kernel<8, CUDAFunctor_add<c10::BFloat16>>",
        2.2,
        "aten::add",
        "Block_0",
        48,
        [ROWS, ROWS, []],
    ),
)
"""A layer of the model, in order."""

OTHER = (
    Launch("Cijk_Alik_Bljk_BBS_BH_MT256x256x32", 61.0, "", "", 0, []),
    Launch("paged_attention_ll4mi_reduce_bf16", 12.5, "", "", 0, []),
)
"""A layer of the graph whose capture is not there."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logdir", type=Path, default=Path("log"))
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--steps", type=int, default=16)
    options = parser.parse_args()
    folder = options.logdir / "simulated_graph_replay"
    write(folder / f"rank0.{EPOCH_US // 1000}.pt.trace.json.gz", replays(options.layers, options.steps))
    write(folder / "capture_traces" / f"bs_{BATCH}_rank0.json.gz", capture(options.layers))
    print(f"the simulated replays and their capture were written to {folder}")


def write(path: Path, events: list[dict[str, Any]]) -> None:
    """Write a trace of a simulated MI300X."""
    path.parent.mkdir(parents=True, exist_ok=True)
    device = {
        "id": 0,
        "name": "AMD Instinct MI300X",
        "totalGlobalMem": 205_822_885_888,
        "numSms": 304,
        "warpSize": 64,
    }
    document = {"schemaVersion": 1, "simulated": True, "deviceProperties": [device], "traceEvents": events}
    with open(path, "wb") as file, gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
        packed.write(json.dumps(document).encode())


def host(category: str, name: str, begin: float, duration: float, **args: Any) -> dict[str, Any]:
    """Return a slice on the thread of the server; times in µs."""
    times = {"ts": EPOCH_US + round(begin, 3), "dur": round(duration, 3)}
    return {"ph": "X", "cat": category, "name": name, "pid": HOST, "tid": HOST, **times, "args": args}


def inputs(launch: Launch) -> dict[str, Any]:
    """Return what `record_shapes=True` records of the inputs of an operator."""
    types = ["c10::BFloat16" if shape else "" for shape in launch.shapes]
    return {"Input Dims": launch.shapes, "Input type": types, "Concrete Inputs": [""] * len(types)}


def label(prompt: int, requests: int, context: int) -> str:
    """Return the annotation of vLLM around an iteration: tokens of a prompt, or requests that decode."""
    prompts = f"context_{int(prompt > 0)}(sq{prompt}sk{prompt}sqsq{prompt**2}sqsk{prompt**2})"
    tokens = requests * context
    decodes = f"generation_{requests}(sq{requests}sk{tokens}sqsq{requests}sqsk{tokens})"
    return f"execute_{max(prompt, requests)}_{prompts}_{decodes}"


def capture(layers: int) -> list[dict[str, Any]]:
    """Return the trace of the capture: calls of modules and operators, and launches that name their kernels."""
    length = 20 * len(LAYER)
    events = [
        host("cuda_runtime", "hipStreamBeginCapture", 10, 2),
        host("cuda_runtime", "hipStreamEndCapture", 30 + layers * length, 2),
        host("python_function", "server.py(88): capture_graphs", 0, 50 + layers * length),
        host("python_function", "nn.Module: Decoder_0", 15, 5 + layers * length),
    ]
    for layer in range(layers):
        begin = 20 + layer * length
        events.append(host("python_function", f"nn.Module: Layer_{layer}", begin, length - 1))
        for number, launch in enumerate(LAYER):
            at = begin + 20 * number
            events += [
                host("python_function", f"nn.Module: {launch.module}", at + 1, 17),
                host("python_function", f"model.py({launch.line}): forward", at + 2, 15),
                host("cpu_op", launch.operator, at + 3, 13, **inputs(launch)),
                host("cuda_runtime", "hipLaunchKernel", at + 5, 4, kernel=launch.kernel),
            ]
    return events


def replays(layers: int, steps: int) -> list[dict[str, Any]]:
    """Return the trace of the replays: a graph launch for each step, and the kernels that it runs."""
    chance = random.Random(0)
    events: list[dict[str, Any]] = []
    now = 1_000.0
    for step in range(steps):
        known = step % 8 != 7
        kernels = (LAYER if known else OTHER) * layers
        correlation = 100 + step
        end = now + 20
        for launch in kernels:
            duration = launch.duration * chance.lognormvariate(0, 0.02)
            args = {"device": DEVICE, "stream": 7, "correlation": correlation}
            event = host("kernel", launch.kernel, end + 0.8, duration, **args)
            events.append(event | {"pid": DEVICE, "tid": 7})
            end += 0.8 + duration
        name = label(0, BATCH, CONTEXT + step) if known else label(PROMPT, 0, 0)
        events += [
            host("user_annotation", f"ProfilerStep#{step}", now, end - now + 30),
            host("user_annotation", name, now + 2, 30),
            host("cuda_runtime", "hipGraphLaunch", now + 5, 9, correlation=correlation),
            # The tokens are needed before the next step can be prepared.
            host("cuda_runtime", "hipStreamSynchronize", now + 33, end + 2 - (now + 33)),
        ]
        now = end + 35
    return events


if __name__ == "__main__":
    main()
