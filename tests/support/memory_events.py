"""Drawing memory events: a line of text per event, for `tests.traces.draw`.

    memory('''
    10  GPU0  a  +512  512  2048
    30  GPU0  a  -512    0  2048   host2
    ''')

Columns: time in us, device, address (a letter or word, "-" for none), size, total allocated and reserved ("-" for
none), thread (default host).
"""

from __future__ import annotations

from typing import Any

DEVICES = {"CPU": (0, -1), "GPU0": (1, 0), "GPU1": (1, 1), "HIP0": (6, 0), "XPU0": (12, 0), "HPU0": (15, 0)}


def memory(picture: str) -> list[dict[str, Any]]:
    """The trace events that the lines draw."""
    return [_event(line.split()) for line in picture.strip().splitlines() if line.strip()]


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
