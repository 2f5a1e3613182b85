"""The columns of a trace in the tools that read Arrow: the same numbers, from the same memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

import torch_tb_profiler as ttp

# Once is enough for what these libraries read; some warn at their import on some Pythons.
pytestmark = pytest.mark.slow

NUMBERS = ("start_ns", "duration_ns", "event", "device")


@pytest.fixture(scope="module")
def kernels(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> pa.Table:
    settings = ttp.Settings(cache_dir=str(tmp_path_factory.mktemp("cache")))
    with ttp.open(str(samples / "simulated_8_h100_late_rank"), settings) as log:
        return log.run().columns(worker="rank0").kernels


def address(table: pa.Table, name: str) -> int:
    (chunk,) = table[name].chunks
    assert chunk.offset == 0
    return int(chunk.buffers()[1].address)


def address_of(numbers: npt.NDArray[Any]) -> int:
    return numbers.ctypes.data


def test_polars_reads_the_numbers_where_they_are(kernels: pa.Table) -> None:
    import polars

    frame = polars.from_arrow(kernels, rechunk=False)
    assert isinstance(frame, polars.DataFrame)
    for name in NUMBERS:
        assert address_of(frame[name].to_numpy(allow_copy=False)) == address(kernels, name), name
    assert frame["duration_ns"].sum() == sum(kernels["duration_ns"].to_pylist())
    assert frame["name"].cast(polars.String).to_list() == kernels["name"].to_pylist()


def test_pandas_reads_the_numbers_where_they_are(kernels: pa.Table) -> None:
    frame = kernels.select(NUMBERS).to_pandas(split_blocks=True)
    for name in NUMBERS:
        assert address_of(np.asarray(frame[name])) == address(kernels, name), name


def test_duckdb_asks_the_table_by_its_name(kernels: pa.Table) -> None:
    import duckdb

    rows = duckdb.sql("select family, sum(duration_ns), count(*) from kernels group by family").fetchall()
    sums = kernels.group_by("family").aggregate([("duration_ns", "sum"), ("duration_ns", "count")]).to_pylist()
    assert {family: (int(time), count) for family, time, count in rows} == {
        row["family"]: (row["duration_ns_sum"], row["duration_ns_count"]) for row in sums
    }
    assert len(rows) > 2
