"""Serves requests with a small language model on the GPU or CPU: continuous batching, chunked prefill, a KV cache.

python examples/serve.py --logdir log/serving

Each iteration has the annotation that vLLM writes. Beside the trace lie the spans of its requests (`otlp.jsonl`),
and what the engine counted itself (`counted.json`).
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from common import device
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from torch.profiler import ProfilerActivity, profile, record_function, tensorboard_trace_handler

VOCABULARY = 512
WIDTH = 128
HEADS = 4
LAYERS = 2


@dataclass
class Request:
    """A prompt, the tokens made for it, and its keys and values by layer."""

    arrival: float
    prompt: list[int]
    wanted: int
    cached: int = 0
    made: list[int] = field(default_factory=list)
    cache: list[tuple[Tensor, Tensor] | None] = field(default_factory=lambda: [None] * LAYERS)
    scheduled: float | None = None
    first_token: float | None = None
    finished: float | None = None

    @property
    def decodes(self) -> bool:
        return self.cached >= len(self.prompt)


class Layer(nn.Module):
    """Attention over the request's own cache, and a feed-forward network."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.norms = nn.ModuleList((nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)))

    def forward(self, x: Tensor, batch: list[tuple[Request, int]], number: int) -> Tensor:
        parts = self.qkv(self.norms[0](x)).split([count for _, count in batch])
        attended = [self.attend(part, request, number) for part, (request, _) in zip(parts, batch, strict=True)]
        x = x + self.out(torch.cat(attended))
        return x + self.down(nn.functional.gelu(self.up(self.norms[1](x))))

    def attend(self, part: Tensor, request: Request, number: int) -> Tensor:
        query, key, value = (each.view(len(part), HEADS, -1).transpose(0, 1) for each in part.chunk(3, dim=-1))
        known = request.cache[number]
        if known is not None:
            key, value = torch.cat((known[0], key), 1), torch.cat((known[1], value), 1)
        request.cache[number] = (key, value)
        rows, columns = query.shape[1], key.shape[1]
        mask = torch.ones(rows, columns, dtype=torch.bool, device=query.device).tril(columns - rows)
        result = scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return result.transpose(0, 1).reshape(rows, WIDTH)


class Model(nn.Module):
    """A transformer without positions: what it says is nonsense, what it costs is real."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens: Tensor, batch: list[tuple[Request, int]]) -> Tensor:
        x = self.embed(tokens)
        for number, layer in enumerate(self.layers):
            x = layer(x, batch, number)
        last = torch.tensor([count for _, count in batch], device=x.device).cumsum(0) - 1
        logits: Tensor = self.head(x[last])
        return logits


def label(prefills: list[tuple[Request, int]], decodes: list[Request]) -> str:
    """Return the annotation of a batch, in the form of vLLM: sums of queries, KV lengths, and their products."""

    def sums(batch: list[tuple[int, int]]) -> str:
        queries, kv = sum(q for q, _ in batch), sum(k for _, k in batch)
        return f"sq{queries}sk{kv}sqsq{sum(q * q for q, _ in batch)}sqsk{sum(q * k for q, k in batch)}"

    context = [(count, request.cached + count) for request, count in prefills]
    running = [(1, request.cached + 1) for request in decodes]
    tokens = sum(q for q, _ in context + running)
    return f"execute_{tokens}_context_{len(context)}({sums(context)})_generation_{len(running)}({sums(running)})"


class Engine:
    """Runs batches: all requests that decode, and as much of the prompts as fits in the budget."""

    def __init__(self, requests: list[Request], budget: int, batch: int) -> None:
        self.waiting, self.running = deque(requests), list[Request]()
        self.budget, self.batch = budget, batch
        self.place = device()
        self.model = Model().eval().to(self.place)
        self.counted: list[dict[str, Any]] = []
        self.began_ns = 0

    def run(self) -> None:
        self.began_ns = time.time_ns()
        began = time.perf_counter()
        while self.waiting or self.running:
            now = time.perf_counter() - began
            if not self.running and self.waiting[0].arrival > now:
                time.sleep(self.waiting[0].arrival - now)
                continue
            with record_function("schedule: allocate_slots"):
                prefills, decodes = self.schedule(now)
            self.iterate(prefills, decodes, began)

    def schedule(self, now: float) -> tuple[list[tuple[Request, int]], list[Request]]:
        decodes = [request for request in self.running if request.decodes]
        while self.waiting and self.waiting[0].arrival <= now and len(self.running) < self.batch:
            self.running.append(self.waiting.popleft())
        left, prefills = self.budget - len(decodes), []
        for request in self.running:
            count = min(left, len(request.prompt) - request.cached)
            if count > 0:
                request.scheduled = now if request.scheduled is None else request.scheduled
                prefills.append((request, count))
                left -= count
        return prefills, decodes

    def iterate(self, prefills: list[tuple[Request, int]], decodes: list[Request], began: float) -> None:
        batch = [*prefills, *((request, 1) for request in decodes)]
        tokens = [token for request, count in prefills for token in request.prompt[request.cached :][:count]]
        tokens += [request.made[-1] for request in decodes]
        self.counted.append(
            {
                "phase": "mixed" if prefills and decodes else "prefill" if prefills else "decode",
                "prompt_tokens": sum(count for _, count in prefills),
                "decode_requests": len(decodes),
                "kv_tokens": sum(request.cached + count for request, count in batch),
            }
        )
        with record_function(label(prefills, decodes)), torch.inference_mode():
            logits = self.model(torch.tensor(tokens, device=self.place), batch)
        with record_function("gpu_model_runner: sample"):
            chosen = logits.argmax(-1).tolist()
        with record_function("gpu_model_runner: bookkeep"):
            now = time.perf_counter() - began
            for (request, count), token in zip(batch, chosen, strict=True):
                request.cached += count
                if request.decodes:
                    request.made.append(token)
                    request.first_token = now if request.first_token is None else request.first_token
                    request.finished = now
            self.running = [request for request in self.running if len(request.made) < request.wanted]


def request_span(number: int, request: Request, began_ns: int) -> dict[str, Any]:
    """Return the OpenTelemetry span of a request, with the attributes that vLLM gives it."""
    assert request.scheduled is not None and request.first_token is not None and request.finished is not None
    seconds = {
        "gen_ai.latency.time_in_queue": request.scheduled - request.arrival,
        "gen_ai.latency.time_to_first_token": request.first_token - request.arrival,
        "gen_ai.latency.e2e": request.finished - request.arrival,
    }
    tokens = {
        "gen_ai.usage.prompt_tokens": len(request.prompt),
        "gen_ai.usage.completion_tokens": len(request.made),
    }
    return {
        "name": "llm_request",
        "startTimeUnixNano": str(began_ns + round(1e9 * request.arrival)),
        "endTimeUnixNano": str(began_ns + round(1e9 * request.finished)),
        "attributes": [
            {"key": "gen_ai.request.id", "value": {"stringValue": f"request {number}"}},
            *({"key": key, "value": {"doubleValue": value}} for key, value in seconds.items()),
            *({"key": key, "value": {"intValue": str(value)}} for key, value in tokens.items()),
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logdir", default="log/serving")
    parser.add_argument("--requests", type=int, default=24)
    parser.add_argument("--rate", type=float, default=60, help="requests that arrive in a second, on average")
    parser.add_argument("--budget", type=int, default=256, help="tokens in a batch; cuts prompts into chunks")
    parser.add_argument("--batch", type=int, default=12, help="requests that run at once")
    options = parser.parse_args()

    torch.set_num_threads(1)  # layers this small gain nothing from more
    torch.manual_seed(0)
    chance = random.Random(0)
    requests, arrival = [], 0.0
    for _ in range(options.requests):
        arrival += chance.expovariate(options.rate)
        prompt = [chance.randrange(VOCABULARY) for _ in range(chance.randint(30, 400))]
        requests.append(Request(arrival, prompt, chance.randint(6, 24)))
    engine = Engine(requests, options.budget, options.batch)
    activities = [ProfilerActivity.CPU]
    if engine.place.type == "cuda":
        activities.append(ProfilerActivity.CUDA)
    with profile(
        activities=activities,
        on_trace_ready=tensorboard_trace_handler(options.logdir, worker_name="serve", use_gzip=True),
    ):
        engine.run()
    tokens = sum(len(request.made) for request in requests)
    spans = [request_span(number, request, engine.began_ns) for number, request in enumerate(requests)]
    with Path(options.logdir, "otlp.jsonl").open("w", encoding="utf-8") as lines:
        for span in spans:
            lines.write(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}) + "\n")
    first = [request.first_token - request.arrival for request in requests if request.first_token is not None]
    counted = {"iterations": engine.counted, "output_tokens": tokens, "time_to_first_token": sorted(first)}
    Path(options.logdir, "counted.json").write_text(json.dumps(counted), encoding="utf-8")
    print(f"{len(engine.counted)} iterations, {tokens} tokens; see {options.logdir}")


if __name__ == "__main__":
    main()
