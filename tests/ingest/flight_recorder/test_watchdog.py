"""Lines of NCCL's watchdog in the log of a job, of all versions."""

from __future__ import annotations

import io

from torch_tb_profiler.ingest.flight_recorder.texts import MAX_BYTES, read_timeouts
from torch_tb_profiler.model.flight_recorder import WatchdogTimeout

WORK = "WorkNCCL(SeqNum=808, OpType=ALLREDUCE, NumelIn=98, NumelOut=98, Timeout(ms)=600000)"
MESSAGE = f"Watchdog caught collective operation timeout: {WORK} ran for 600020 milliseconds before timing out.\n"
PREFIX = "[rank3]:[E626 06:24:44.903881913 ProcessGroupNCCL.cpp:616] "


def timeouts(text: str) -> list[WatchdogTimeout]:
    return read_timeouts(io.BytesIO(text.encode()))


def test_a_line_names_rank_group_call_and_time() -> None:
    (found,) = timeouts(f"step 7\n{PREFIX}[PG ID 2 PG GUID 14(dp (outer)) Rank 1] {MESSAGE}")
    assert found == WatchdogTimeout(3, 1, "14", 808, "ALLREDUCE", 600_020_000_000)


def test_older_versions_leave_out_the_group_and_the_global_rank() -> None:
    assert timeouts(f"{PREFIX}[Rank 3] {MESSAGE}")[0][:4] == (3, 3, None, 808)
    assert timeouts(f"[E ProcessGroupNCCL.cpp:458] [Rank 1] {MESSAGE}")[0][:4] == (None, 1, None, 808)
    assert timeouts(f"{PREFIX}[PG 1 Rank 0] {MESSAGE}")[0][:4] == (3, 0, None, 808)


def test_a_call_that_the_log_repeats_counts_once_and_other_lines_do_not() -> None:
    raised = f"  what():  [PG 3 Rank 3] Process group watchdog thread terminated: [Rank 3] {MESSAGE}"
    assert len(timeouts(f"{PREFIX}[Rank 3] {MESSAGE}{PREFIX}[Rank 3] {MESSAGE}{PREFIX}{raised}")) == 1
    assert timeouts("Watchdog caught collective operation timeout: see above\n" * 3) == []


def test_a_log_is_read_from_its_end() -> None:
    begin = f"{PREFIX}[Rank 3] {MESSAGE}".encode()
    log = io.BytesIO(begin + b"\n" * MAX_BYTES)
    assert read_timeouts(log) == []
    log = io.BytesIO(b"\n" * MAX_BYTES + begin)
    assert len(read_timeouts(log)) == 1
