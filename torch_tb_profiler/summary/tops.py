"""What takes the most time: rows of the same name summed over the workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from torch_tb_profiler.summary.payload import Top

MOST = 5

Table = Literal["operators", "kernels", "modules"]


def tops(table: Table, answers: Mapping[str, Any]) -> list[Top]:
    """The five rows with the most time of the device; of the host where no row has any of the device."""
    rows = [row for payload in answers.values() for row in _rows(table, payload)]
    of_device = any(device for *_, device, _ in rows)
    sums: dict[str, tuple[str, int, int]] = {}
    for name, shown, calls, device, host in rows:
        _, known_calls, known_time = sums.get(name, ("", 0, 0))
        sums[name] = shown, known_calls + calls, known_time + (device if of_device else host)
    total = sum(time for _, _, time in sums.values())
    most = sorted(sums.values(), key=lambda each: -each[2])[:MOST]
    return [Top(shown, calls, time, time / total if total else None) for shown, calls, time in most if time]


def _rows(table: Table, payload: Any) -> Iterator[tuple[str, str, int, int, int]]:
    """(name, name as it is shown, calls, time of the device, time of the host)."""
    if table == "operators":
        for row in payload.rows:
            yield row.name, row.name, row.calls, row.device_self_ns or 0, row.host_self_ns
    elif table == "kernels":
        for row in payload.rows:
            yield row.name, row.short_name, row.calls, row.total_ns, 0
    else:
        for row in payload.classes:
            yield (
                row.name,
                row.name,
                row.calls,
                row.device_self_ns,
                row.host_exclusive_ns + row.backward_host_self_ns,
            )
