"""Draws `trace_view.json` as `torch_npu` writes it: a bare list, times as decimal text in µs since the epoch.

Processes, pids and arguments after msprof (`analysis/csrc/application/timeline`): pid << 10 | layer << 5 | device.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

EPOCH = 1_704_164_645_000_000
PYTHON, DEVICE = 4242, 3
LAYERS = {"CANN": 2, "Ascend Hardware": 4, "Communication": 6, "Overlap Analysis": 8}

GROUP, PLANE = 5, 6


class Task(NamedTuple):
    """Device work, µs since `EPOCH`; `operator` and `call`: number of what launched it, None without a flow."""

    name: str
    type: str
    stream: int
    start: float
    length: float
    operator: int | None = None
    call: int | None = None


OPERATORS = (("aten::mm", 10.5, 20), ("aten::add", 40, 10.25), ("aten::to", 60, 8))
CALLS = (("aclnnMatmul", 15, 4), ("aclnnAdd", 42, 3), ("AscendCL@aclrtMemcpyAsync", 62, 5))
TASKS = (
    Task("MatMulV3", "AI_CORE", 2, 30.125, 40.5, 0, 0),
    Task("Add", "AI_VECTOR_CORE", 2, 75, 5, 1, 1),
    Task("MEMCPY_ASYNC", "SDMA", 7, 80, 12, 2, 2),
    Task("EVENT_WAIT", "EVENT_WAIT", 7, 92, 30),
    Task("Unknown", "", 7, 130, 2),
)
COLLECTIVES = (("hcom_allReduce__123_0_1", 100, 50), ("hcom_broadcast__123_1_1", 155, 4.5))
PARTS = (("Notify_Wait", 101, 20), ("Memcpy", 121, 10), ("Reduce_Inline", 131, 15))
DERIVED = (("Computing", 30, 60), ("Communication", 100, 60), ("Free", 160, 40))
SIZE = 200.0


def pid(process: str) -> int:
    """Compose a process id as msprof does."""
    return PYTHON << 10 | LAYERS[process] << 5 | (0 if process == "CANN" else DEVICE)


def events(*, step: int = 4) -> list[dict[str, Any]]:
    """Return one step of `SIZE` µs."""

    def at(time: float) -> str:
        return f"{EPOCH + int(time)}.{round(time % 1 * 1000):03d}"

    def slice_(
        name: str, process: int, tid: int, start: float, length: float, category: Any = None, **args: Any
    ) -> dict[str, Any]:
        event = {"ph": "X", "name": name, "pid": process, "tid": tid, "ts": at(start), "dur": length, "args": args}
        return event if category is None else {**event, "cat": category}

    def name_event(what: str, process: int, tid: int, key: str, value: object) -> dict[str, Any]:
        return {"ph": "M", "name": what, "pid": process, "tid": tid, "args": {key: value}}

    hardware, talk, overlap = pid("Ascend Hardware"), pid("Communication"), pid("Overlap Analysis")
    rows = [
        name_event("process_name", PYTHON, 0, "name", "Python"),
        *(name_event("process_name", pid(name), 0, "name", name) for name in LAYERS),
        *(name_event("process_labels", pid(name), 0, "labels", "NPU") for name in LAYERS),
        *(name_event("thread_name", hardware, stream, "name", f"Stream {stream}") for stream in (2, 7)),
        name_event("thread_name", talk, GROUP, "name", "Group 0 Communication"),
        name_event("thread_name", talk, PLANE, "name", "Plane 0"),
        *(name_event("thread_name", overlap, number, "name", name) for number, (name, *_) in enumerate(DERIVED)),
        slice_(f"ProfilerStep#{step}", PYTHON, PYTHON, 0, SIZE, "user_annotation"),
    ]
    for number, (name, start, length) in enumerate(OPERATORS):
        dims = {
            "Sequence number": -1,
            "Fwd thread id": 0,
            "Input Dims": "64,128;128,256",
            "Input type": "float;float",
        }
        rows.append(slice_(name, PYTHON, PYTHON, start, length, "cpu_op", **dims))
        rows.append(slice_("Enqueue", PYTHON, PYTHON, start + 5, 1, "enqueue", correlation_id=number))
        rows.append(slice_("Dequeue", PYTHON, PYTHON + 1, start + 7, 1, "dequeue", correlation_id=number))
    for number, (name, start, length) in enumerate(CALLS):
        rows.append(slice_(name, pid("CANN"), PYTHON + 1, start, length, Mode="launch", connection_id=number))

    def flow(category: str, id: object, source: tuple[int, int, float], target: tuple[int, int, float]) -> None:
        for ph, (process, tid, time) in (("s", source), ("f", target)):
            rows.append(
                {
                    "ph": ph,
                    "bp": "e",
                    "name": category,
                    "cat": category,
                    "id": id,
                    "pid": process,
                    "tid": tid,
                    "ts": at(time),
                }  # fmt: skip
            )

    for number, task in enumerate(TASKS):
        args: dict[str, Any] = {"Model Id": 4294967295, "Physic Stream Id": task.stream, "Task Id": number}
        rows.append(
            slice_(
                task.name,
                hardware,
                task.stream,
                task.start,
                task.length,
                **args,
                **({"Task Type": task.type} if task.type else {}),
            )  # fmt: skip
        )
        target = (hardware, task.stream, task.start)
        if task.operator is not None:
            flow("async_npu", number, (PYTHON, PYTHON, OPERATORS[task.operator][1]), target)
        if task.call is not None:
            flow("HostToDevice", str(number << 33), (pid("CANN"), PYTHON + 1, CALLS[task.call][1]), target)
    rows += [slice_(name, talk, GROUP, start, length) for name, start, length in COLLECTIVES]
    rows += [slice_(name, talk, PLANE, start, length, **{"size(Byte)": 64}) for name, start, length in PARTS]
    rows += [slice_(name, overlap, at_, start, length) for at_, (name, start, length) in enumerate(DERIVED)]
    return rows


def write(folder: Path, rank: int, *, stamp: str = "20240102030405006", named: bool = True) -> None:
    """Write the folder of a process; `named`: with the file that names its rank."""
    home = folder / f"host_{PYTHON + rank}_{stamp}_ascend_pt"
    output = home / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    (output / "trace_view.json").write_text(json.dumps(events()))
    (output / "communication.json").write_text(json.dumps({"step4": {}}))
    if named:
        (home / f"profiler_info_{rank}.json").write_text(json.dumps({"rank_id": rank}))
