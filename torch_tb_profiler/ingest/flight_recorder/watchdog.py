"""What NCCL's watchdog gave up, from the log of a job.

[rank2]:[E1206 18:44:12.71 ProcessGroupNCCL.cpp:616] [PG ID 1 PG GUID 1(dp) Rank 0] Watchdog caught collective
operation timeout: WorkNCCL(SeqNum=418, OpType=ALLREDUCE, ..., Timeout(ms)=600000) ran for 600061 milliseconds
before timing out.

The rank at the start of a line is global, the one in the second bracket is that within the group. Older versions
write `[Rank 0]` or `[PG 1 Rank 0]`, and nothing at the start.
"""

from __future__ import annotations

from typing import BinaryIO

from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.model.flight_recorder import WatchdogTimeout

MAX_BYTES = 16 * 2**20
"""What of a log is read, from its end: the watchdog speaks last."""

_TIMEOUT = lazy_regex(
    rb"(?:\[rank(?P<rank>\d{1,7})\]:[^\n]{0,200}?)?"
    rb"\[(?:PG [^\]\n]{0,40}?GUID (?P<group>[^\s(\]]{1,100})[^\]\n]{0,200} |PG [^\]\n]{1,40} )?"
    rb"Rank (?P<position>\d{1,7})\] Watchdog caught collective operation timeout: "
    rb"Work\w{1,20}\(SeqNum=(?P<number>\d{1,18}), OpType=(?P<operation>\w{1,40})[^\n]{0,1000}? "
    rb"ran for (?P<ran_ms>\d{1,12}) milliseconds"
)


def read_timeouts(stream: BinaryIO) -> list[WatchdogTimeout]:
    """Return the calls that the watchdogs gave up, each once; none if the log has no such line."""
    stream.seek(max(0, stream.seek(0, 2) - MAX_BYTES))
    found: dict[tuple[int | None, int, str | None, int, str], WatchdogTimeout] = {}
    for match in _TIMEOUT.finditer(stream.read(MAX_BYTES)):
        operation = match["operation"].decode("ascii", "replace")
        timeout = WatchdogTimeout(
            rank=None if match["rank"] is None else int(match["rank"]),
            position=int(match["position"]),
            group=None if match["group"] is None else match["group"].decode("utf-8", "replace"),
            number=int(match["number"]),
            operation=operation,
            ran_ns=int(match["ran_ms"]) * 1_000_000,
        )
        found.setdefault(timeout[:5], timeout)  # the watchdog says it again as it ends the process
    return [*found.values()]
