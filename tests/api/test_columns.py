"""The columns of a trace: they add up to what the views say, share memory with the trace, and null is unknown."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import torch_tb_profiler as ttp
from tests.support.traces import draw
from torch_tb_profiler.api.column_tables import text_array, value_array
from torch_tb_profiler.api.columns import Columns
from torch_tb_profiler.model.trace import ABSENT

NAMES = (
    "events",
    "operators",
    "kernels",
    "copies",
    "memory",
    "collectives",
    "steps",
    "iterations",
    "modules",
    "gaps",
)
RUNS = ("simulated_8_h100_late_rank", "transformer", "ddp", "lightning")


@pytest.fixture(scope="module")
def log(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> ttp.Log:
    return ttp.open(str(samples), ttp.Settings(cache_dir=str(tmp_path_factory.mktemp("cache"))))


def total(column: pa.ChunkedArray) -> int:
    return int(pc.sum(column).as_py() or 0)


@pytest.mark.parametrize("run", RUNS)
def test_the_columns_add_up_to_what_the_views_say(log: ttp.Log, run: str) -> None:
    columns = log[run].columns()
    for name in NAMES:
        table = getattr(columns, name)
        table.validate(full=True)
        assert len(table.to_pandas()) == table.num_rows
    totals = log[run].operators().data.totals
    assert total(columns.operators["host_self_ns"]) == totals.host_self_ns
    assert columns.operators.num_rows == totals.calls
    assert total(columns.operators["device_self_ns"]) == (totals.device_self_ns or 0)
    called = Counter(columns.operators["name"].to_pylist())
    assert called == {row.name: row.calls for row in log[run].operators().data.rows}
    steps = log[run].overview().data.steps
    assert columns.steps["duration_ns"].to_pylist() == [step.duration_ns for step in steps]
    assert columns.steps["kernel_ns"].to_pylist() == [step.categories.kernel for step in steps]


def test_devices_add_up_too(log: ttp.Log) -> None:
    run = log["simulated_8_h100_late_rank"]
    columns, kernels, idle = (
        run.columns(worker="rank3"),
        run.kernels(worker="rank3").data,
        run.idle(worker="rank3"),
    )
    assert total(columns.kernels["duration_ns"]) == kernels.total_ns
    assert columns.kernels.num_rows == kernels.calls
    assert columns.copies.num_rows == sum(row.calls for row in kernels.memory_operations)
    assert total(columns.gaps["duration_ns"]) == idle.data.idle_ns > 0
    sums = columns.gaps.group_by("cause").aggregate([("duration_ns", "sum")]).to_pylist()
    assert {row["cause"]: row["duration_ns_sum"] for row in sums} == {
        cause.cause: cause.time_ns for cause in idle.data.sums
    }
    memory = run.memory(worker="rank3").data.devices[0]
    assert memory.peak_allocated is not None
    assert pc.max(columns.memory["allocated_bytes"]).as_py() == memory.peak_allocated.bytes
    ranks = run.distributed().data.ranks
    assert columns.collectives.num_rows == next(rank.calls for rank in ranks if rank.worker == "rank3")


def test_an_event_is_the_row_of_another_table(log: ttp.Log) -> None:
    columns = log["simulated_8_h100_late_rank"].columns()
    for name in ("operators", "kernels", "copies", "modules"):
        table = getattr(columns, name)
        rows = columns.events.take(table["event"].combine_chunks())
        assert rows["start_ns"].equals(table["start_ns"])
    launched = columns.events.take(columns.kernels["launch"].combine_chunks())
    assert all("aunch" in name for name in launched["name"].unique().to_pylist())


def test_what_is_not_there_is_null() -> None:
    columns = Columns(
        draw("""
        host  cpu_op  aten::mm  0  10  External~id=1
        gpu0  kernel  gemm      5  20  device=0 stream=7
        """)
    )
    assert columns.kernels["launch"].to_pylist() == columns.kernels["operator"].to_pylist() == [None]
    assert columns.operators["step"].to_pylist() == columns.operators["module"].to_pylist() == [None]
    assert columns.events["id"].null_count == len(columns.events)
    assert columns.collectives.num_rows == columns.memory.num_rows == 0
    assert columns.steps["recorded"].to_pylist() == [False]


def test_a_trace_without_a_device_has_no_gaps_and_says_so_with_the_same_columns() -> None:
    host = Columns(draw("host cpu_op aten::mm 0 10")).gaps
    both = Columns(draw("host cpu_op aten::mm 0 10\ngpu0 kernel gemm 5 2 device=0 stream=7")).gaps
    assert host.num_rows == 0 and host.schema.names == both.schema.names
    assert [field.type for field in host.schema] == [field.type for field in both.schema]


def test_numbers_share_the_memory_of_the_trace() -> None:
    trace = draw("host cpu_op aten::mm 0 10\nhost cpu_op aten::add 20 10")
    column = Columns(trace).events["start_ns"].chunk(0)
    assert column.buffers()[1].address == trace.events.start.ctypes.data
    # Readers take the column over as it is, too.
    assert column.to_numpy(zero_copy_only=True).ctypes.data == trace.events.start.ctypes.data


def test_absent_numbers_are_null_and_their_neighbors_whole() -> None:
    numbers = np.array([2**53 + 1, ABSENT, -5], np.int64)
    assert value_array(numbers).to_pylist() == [2**53 + 1, None, -5]
    assert value_array(np.array([3, -1], np.int32)).to_pylist() == [3, None]
    assert value_array(np.array([True, False])).to_pylist() == [True, False]


@pytest.mark.parametrize(
    ("codes", "dictionary", "expected"),
    [
        ([0, -1, 1], ["a", "b"], ["a", None, "b"]),
        ([2], ["a", "b", "c"], ["c"]),
        ([-1], ["a", "b"], [None]),
        ([0, 1, 2], ["same", "same", "other"], ["same", "same", "other"]),
        ([0], ["\udc80"], ["?"]),
    ],
)
def test_texts_by_code(codes: list[int], dictionary: list[str], expected: list[str | None]) -> None:
    column: Any = text_array(np.array(codes, np.int32), dictionary)
    assert column.to_pylist() == expected
    assert len(set(column.dictionary.to_pylist())) == len(column.dictionary)


def test_a_data_frame_keeps_whole_numbers_whole(log: ttp.Log) -> None:
    from torch_tb_profiler.api.result import to_data_frame

    frame = to_data_frame(pa.table({"address": pa.array([2**53 + 1, None]), "size": pa.array([1, 2])}))
    assert int(frame["address"][0]) == 2**53 + 1
    assert str(frame["address"].dtype) == "Int64" and str(frame["size"].dtype) == "int64"
