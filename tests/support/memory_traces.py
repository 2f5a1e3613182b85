"""Traces with memory events for tests, drawn with a line of text per event.

    draw(CALLS, *memory('''
    10  GPU0  a  +512  512  2048
    30  GPU0  a  -512    0  2048   host2
    '''))

Columns: time in us, device, address (a letter or word, "-" for none), size, total allocated and reserved ("-" for
none), thread (default host).
"""

from __future__ import annotations

from typing import Any

from tests.support.traces import draw
from torch_tb_profiler.model.trace import Trace

DEVICES = {"CPU": (0, -1), "GPU0": (1, 0), "GPU1": (1, 1), "HIP0": (6, 0), "XPU0": (12, 0), "HPU0": (15, 0)}


def memory(picture: str) -> list[dict[str, Any]]:
    """Return the trace events that the lines draw."""
    return [_event(line.split()) for line in picture.strip().splitlines() if line.strip()]


def out_of_memory(
    *devices: str, size: int = 4096, allocated: int = 1312, reserved: int = 9000
) -> list[dict[str, Any]]:
    """Return the events of an allocation on each device that runs out of memory."""
    failed = memory("\n".join(f"115 {device} - {size} {allocated} {reserved}" for device in devices))
    for event in failed:
        event["name"] = "[OutOfMemory]"
    return failed


def _event(parts: list[str]) -> dict[str, Any]:
    time, device, address, size, allocated, reserved, *thread = parts
    type_, id = DEVICES[device]
    args: dict[str, Any] = {"Device Type": type_, "Device Id": id, "Bytes": int(size)}
    if address != "-":
        args["Addr"] = int.from_bytes(address.encode(), "big")
    for key, text in (("Total Allocated", allocated), ("Total Reserved", reserved)):
        if text != "-":
            args[key] = int(text)
    tid = int((thread or ["host"])[0][4:] or 1)
    return {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": tid,
            "ts": float(time), "args": args}  # fmt: skip


CALLS = """
host  user_annotation  ProfilerStep#1           0  100
host  user_annotation  ProfilerStep#2         100  100
host  user_annotation  ProfilerStep#3         200  100
host  python_function  train.py(7):~step        0  300  Python~id=1
host  python_function  nn.Module:~Linear_0      5   90  Python~module~id=0
host  cpu_op           aten::linear            10   40
host  cpu_op           aten::empty             15   10
host  cpu_op           aten::relu             110   20
host  cpu_op           aten::relu             210   20
"""

STEPS = "\n".join(f"host user_annotation ProfilerStep#{i} {100 * i} 100" for i in range(1, 6))

EVENTS = """
 20  GPU0  a   512  1512  4096
 30  GPU0  b   100  1612  4096
 60  GPU0  b  -100  1512  4096
 61  GPU0  x  -200  1312  4096
 90  CPU   a    64    64     0
115  GPU0  c   300  1612  4096
120  GPU0  d  1000  2612  8192
150  GPU0  d -1000  1612  8192
215  GPU0  e   300  1912  8192
"""


def three_steps() -> Trace:
    """Return three steps on a GPU and its host, each of which leaves 300 bytes."""
    properties = [{"id": 0, "name": "A100", "totalGlobalMem": 40 * 2**30}]
    return draw(CALLS, *memory(EVENTS), deviceProperties=properties)


def steps_that_leave(*sizes: int) -> Trace:
    """Return a step per size, each of which leaves a block of it, after an old block of 100,000 bytes."""
    picture = "\n".join(f"host user_annotation ProfilerStep#{i} {100 * i + 100} 100" for i in range(len(sizes)))
    events, total = ["1 CPU a 100000 100000 0"], 100_000
    for i, size in enumerate(sizes):
        total += size
        events.append(f"{100 * i + 150} CPU b{i} {size} {total} 0")
    return draw(picture, *memory("\n".join(events)))


def five_steps() -> Trace:
    """Return steps 1 to 5 on a GPU; the last four leave 300 bytes each, made by `aten::relu` in `step`."""
    calls = "\n".join(f"host cpu_op aten::relu {100 * i + 10} 20" for i in range(1, 6))
    frame = "host python_function train.py(7):~step 0 700 Python~id=1"
    events = "\n".join(f"{100 * i + 15} GPU0 {'abcde'[i - 1]} 300 {300 * i - 300} 4096" for i in range(2, 6))
    return draw(f"{frame}\n{STEPS}\n{calls}", *memory(events))


def leaving_on(leaking: str, released: bool = False, replaces: bool = False) -> Trace:
    """Return five steps on a CPU and a GPU, in each of which an operator leaves a MiB on one of them.

    released  all of it is, after the last step
    replaces  as much memory from before the trace is released in each step
    """
    mib = 2**20
    picture, lines, total = [], ["1 CPU x 8 8 0", f"1 GPU0 y 8 {8 + 9 * mib} 0"], {"CPU": 8, "GPU0": 8 + 9 * mib}
    for i in range(1, 6):
        at = 100 * i
        picture += [f"host user_annotation ProfilerStep#{i} {at} 100", f"host cpu_op aten::relu {at + 10} 10"]
        total[leaking] += mib
        lines.append(f"{at + 12} {leaking} {'abcde'[i - 1]} {mib} {total[leaking]} 0")
        if replaces:
            total[leaking] -= mib
            lines.append(f"{at + 15} {leaking} old{i} {-mib} {total[leaking]} 0")
    for i in range(5) if released else ():
        total[leaking] -= mib
        lines.append(f"{700 + i} {leaking} {'abcde'[i]} {-mib} {total[leaking]} 0")
    return draw("\n".join(picture), *memory("\n".join(lines)))
