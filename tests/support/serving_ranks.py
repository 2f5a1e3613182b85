"""Ranks that run the iterations of a simulated engine together, each with a communication kernel."""

from __future__ import annotations

import json
from typing import Any

from tests.support.serving import Workload, serving_document

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def rank_document(
    load: Workload, *, slower: float = 1.0, slowest: float | None = None, skip: int = 0, communicates: bool = True
) -> bytes:
    """Return the trace of a rank whose matrix products take `slower` times as long.

    slowest  `slower` of the rank that the communication waits for; None if it waits for none
    skip  iterations before the recording begins
    """
    events = json.loads(serving_document(load))["traceEvents"]
    labels = [event["ts"] for event in events if event["name"].startswith("execute_")]
    events = [event for event in events if event.get("ts", labels[skip]) >= labels[skip]]
    behind = 0.0 if slowest is None else slowest - slower
    ranked: list[dict[str, Any]] = []
    for event in events:
        if event["name"] == "gemm":
            waiting = event["dur"] * 0.7 * behind
            event = {**event, "dur": event["dur"] * 0.7 * slower}  # room for the communication
            if communicates:
                end = event["ts"] + event["dur"]
                ranked.append({**event, "name": ALL_REDUCE, "ts": end, "dur": 40.0 + waiting})
        ranked.append(event)
    return json.dumps({"schemaVersion": 1, "traceEvents": ranked}).encode()
