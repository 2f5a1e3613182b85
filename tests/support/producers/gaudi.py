"""Draws traces as Habana's bridge to PyTorch writes them, in both of its ways.

legacy   the bridge reads the file that PyTorch wrote, adds its own events and writes all with sorted keys
plugin   its events pass through PyTorch's profiler: categories in lower case, calls are `hpu_op`

After `backend/profiling/{json_file_parser,kineto_activity_profiler}.cpp` and `trace_sources/*.cpp` of the bridge.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

HOST, LOOP, SYNAPSE, MEMORY = 4242, 4242, 99, 34242
"""Processes: of PyTorch (where the bridge logs too), of the Synapse library, of the allocator's log."""

CARD = 0
MME, TPC, EDMA, NIC, ARC = 6, 7, 4, 14, 12
"""Types of engines of a Gaudi 2; the engine's thread is 1000 x its type + its number."""

NAMES = {MME: "MME", TPC: "TPC", EDMA: "EDMA", NIC: "NIC", ARC: "ARC_FARM"}
_LEGACY = {"kernel": "Kernel", "gpu_memcpy": "Memcpy", "gpu_memset": "Memset", "hpu_op": "Runtime"}


class EngineNode(NamedTuple):
    """Work of one engine, µs."""

    type: int
    engine: int
    name: str
    start: float
    length: float
    recipe: int = 1
    node: str = ""

    @property
    def category(self) -> str:
        if self.type in (MME, TPC):
            return "kernel"
        return "gpu_memcpy" if self.name.startswith("memcpy") else "hpu_op"


STEP = (
    EngineNode(MME, 0, "gemm", 100, 50),
    EngineNode(MME, 1, "gemm", 101, 50),
    EngineNode(TPC, 0, "add_fwd_bf16", 160, 20),
    EngineNode(TPC, 1, "add_fwd_bf16", 162, 20),
    EngineNode(TPC, 2, "add_fwd_bf16", 161, 25),
    EngineNode(TPC, 0, "add_fwd_bf16", 186, 20),  # the same node again, before the slowest engine is done
    EngineNode(TPC, 1, "add_fwd_bf16", 187, 20),
    EngineNode(TPC, 2, "add_fwd_bf16", 188, 20),
    EngineNode(TPC, 3, "add_fwd_bf16", 190, 5, recipe=2),  # another graph's
    EngineNode(EDMA, 0, "memcpy_h2d", 80, 10),
    EngineNode(EDMA, 1, "StridedCopy", 85, 10),
    EngineNode(NIC, 3, "Send", 210, 40),
    EngineNode(NIC, 4, "Recv", 215, 40),
    EngineNode(ARC, 0, "dispatch", 90, 3),
)

GRAPHS = (("SyncTensorsGraphInternal", 55, 40), ("LaunchSyncTensorsGraph", 65, 25))
"""The bridge builds a graph and launches it: name, start, duration, µs."""

MEMORY_LOG = ((0x1000, 4096, 4096), (0x3000, 1024, 5120), (0x1000, -4096, 1024))
"""Address, bytes, bytes in use after it."""

WRAPPED = (
    ("ProfilerStep#7", "user_annotation", 0, 300),
    ("aten::mm", "cpu_op", 10, 20),
    ("aten::add", "cpu_op", 40, 10),
)


def _metadata() -> list[dict[str, Any]]:
    def name_event(what: str, pid: int, tid: int, name: str) -> dict[str, Any]:
        return {"name": what, "ph": "M", "ts": 0.0, "pid": pid, "tid": tid, "args": {"name": name}}

    lanes = {(node.type, node.engine) for node in STEP}
    return [
        name_event("process_name", CARD, 0, f"/device:HPU:{CARD}"),
        *(
            name_event("thread_name", CARD, 1000 * kind + number, f"{NAMES[kind]} {number}")
            for kind, number in sorted(lanes)
        ),
        name_event("thread_name", SYNAPSE, 5, "Synapse/Thread 5"),
        name_event("process_name", HOST, 0, "python3"),
        name_event("process_name", HOST, 0, "Bridge Logs"),
        name_event("process_name", MEMORY, 0, "Memory Logs"),
    ]


def events(*, plugin: bool, nodes: Sequence[EngineNode] = STEP) -> list[dict[str, Any]]:
    """Return one step: PyTorch's part and the card's."""

    def slice_(category: str, name: str, pid: int, tid: int, ts: float, dur: float, **args: Any) -> dict[str, Any]:
        spelled = category if plugin else _LEGACY.get(category, category)
        return {
            "ph": "X", "cat": spelled, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args,
        }  # fmt: skip

    rows = _metadata()
    rows += [slice_(category, name, HOST, LOOP, ts, dur) for name, category, ts, dur in WRAPPED]
    # What lies beside PyTorch's own calls in the plugin's way is hidden from its tables.
    hidden: dict[str, Any] = {"hidden": 1} if plugin else {}
    for node in nodes:
        args = {
            "recipeId": node.recipe,
            "recipeName": f"graph_{node.recipe}",
            "streamHandle": "0x7f",
            "eventHandle": "0x0",
            "dataType": "bf16",
            "EventName": node.node or f"{node.name}_n1",
            **({"device": CARD} if node.category == "kernel" else {}),
            **hidden,
        }
        tid = 1000 * node.type + node.engine
        rows.append(slice_(node.category, node.name, CARD, tid, node.start, node.length, **args))
    rows.append(
        slice_(
            "hpu_op", "enqueueWithExternalEvents", SYNAPSE, 5, 70, 6, recipeId=1, recipeName="graph_1", **hidden
        )
    )
    for name, ts, dur in GRAPHS:
        call = slice_("privateuse1_runtime" if plugin else "hpu_op", name, HOST, LOOP + 1, ts, dur)
        if plugin:
            rows.append(call)
        else:
            del call["dur"]
            rows += [{**call, "ph": "B"}, {**call, "ph": "E", "ts": ts + dur}]
    if plugin:
        rows.append(slice_("privateuse1_runtime", "launch", HOST, LOOP + 1, 280, 60, hidden=1))
        for at, pid, tid, ts in ((0, SYNAPSE, 5, 72), (1, CARD, 6000, 100)):
            rows.append(slice_("hpu_op", "gemm", pid, tid, ts, 0, **hidden))
            flow = {"ph": "sf"[at], "cat": "ac2g", "name": "ac2g", "id": 1, "pid": pid, "tid": tid, "ts": ts}
            rows.append({**flow, "bp": "e"} if at else flow)
    for at, (address, size, total) in enumerate(MEMORY_LOG):
        rows.append(
            {
                "ph": "i",
                "cat": "cpu_instant_event",
                "name": "[memory]",
                "pid": MEMORY,
                "tid": LOOP,
                "s": "t",
                "ts": 60 + 10 * at,
                "args": {
                    "Addr": address,
                    "Bytes": size,
                    "Device Id": 0,
                    "Device Type": 1,
                    "Profiler Event Index": at + 1,
                    "Total Allocated": total,
                    "Total Reserved": 8192,
                },
            }  # fmt: skip
        )
    return rows


def several(rows: Sequence[dict[str, Any]], steps: int) -> list[dict[str, Any]]:
    """Return the events of one step `count` times, one after the other."""
    again = [
        {**each, "ts": each["ts"] + 300 * number, "name": each["name"].replace("#7", f"#{7 + number}")}
        for number in range(1, steps)
        for each in rows
        if each["ph"] != "M"
    ]
    return [*rows, *again]


def content(*, plugin: bool = False, nodes: Sequence[EngineNode] = STEP, steps: int = 1) -> bytes:
    """Return the bytes of a file; the legacy one begins with the keys that are first in the alphabet."""
    properties = {"name": "HL-225", "totalGlobalMem": 96 << 30}
    trace = {
        "schemaVersion": 1,
        "deviceProperties": [properties],
        "traceEvents": several(events(plugin=plugin, nodes=nodes), steps),
        "baseTimeNanoseconds": 1_700_000_000_000_000_000,
    }
    return json.dumps(trace, sort_keys=not plugin).encode()
