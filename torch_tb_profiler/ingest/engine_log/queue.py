"""Read what a server's log says of its queue, every few seconds or at every iteration.

    INFO 11-26 07:00:01 [loggers.py:259] Engine 000: Avg prompt throughput: 98.0 tokens/s, Avg generation
        throughput: 19.4 tokens/s, Running: 4 reqs, Waiting: 1 reqs, GPU KV cache usage: 64.6%, ...
    [2026-11-26 07:00:01 TP0] Decode batch, #running-req: 4, #token: 512, token usage: 0.65, #queue-req: 1

Sources: vLLM `v1/metrics/loggers.py`, `v1/engine/core.py`; SGLang `managers/scheduler_metrics_mixin.py`.
"""

from __future__ import annotations

from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.ingest.engine_log.lines import LogLine
from torch_tb_profiler.model.serving.queue import QueueSample

_NUMBER = r"(\d{1,15}(?:\.\d{1,9})?)"
_THROUGHPUT = lazy_regex(
    rf"(?:Engine (\d{{1,6}}): |\d{{1,6}} Engines Aggregated: )?Avg prompt throughput: {_NUMBER} tokens/s, "
    rf"Avg generation throughput: {_NUMBER} tokens/s, Running: (\d{{1,9}}) reqs, (.{{0,400}})"
)
_VLLM_QUEUE = lazy_regex(r"(?:Waiting|Pending): (\d{1,9}) reqs")
_VLLM_CACHE = lazy_regex(rf"GPU KV cache usage: {_NUMBER}%")
_ITERATION = lazy_regex(
    r"(?:Engine (\d{1,6}): )?Iteration\(\d{1,12}\): (\d{1,9}) context requests, \d{1,12} context tokens, "
    r"(\d{1,9}) generation requests, \d{1,12} generation tokens, (.{0,200})"
)
_BATCH = lazy_regex(r"(?:Decode|Prefill) batch\b.{0,20}?(#.{0,600})")
_BATCH_FIELD = lazy_regex(rf"(#[a-z-]+-req|(?:full )?token usage|\w+ throughput \(token/s\)): {_NUMBER}")


def read_queue(line: LogLine) -> QueueSample | None:
    """Return what a line says of the queue, without its time, or None if it says nothing of it."""
    text = line.text
    if match := _THROUGHPUT.match(text):
        queue = _VLLM_QUEUE.search(match[5])
        waiting = int(queue[1]) if queue else None
        return QueueSample(0, match[1] or "", int(match[4]), waiting, _vllm_cache(match[5]))
    if match := _ITERATION.match(text):
        running = int(match[2]) + int(match[3])
        return QueueSample(0, match[1] or line.engine, running, kv_share=_vllm_cache(match[4]))
    if match := _BATCH.match(text):
        fields = {name: float(value) for name, value in _BATCH_FIELD.findall(match[1])}
        usage = fields.get("token usage", fields.get("full token usage"))
        return QueueSample(0, line.engine, _count(fields, "#running-req"), _count(fields, "#queue-req"), usage)
    return None


def _count(fields: dict[str, float], name: str) -> int | None:
    return int(fields[name]) if name in fields else None


def _vllm_cache(text: str) -> float | None:
    match = _VLLM_CACHE.search(text)
    return float(match[1]) / 100 if match else None
