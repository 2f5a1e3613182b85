"""A folder of AORTA's artifacts: its metrics, with traces of PyTorch and rocprofv3 of the same window."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.producers.aorta import active, count_ranges, iteration, line, write
from tests.support.producers.rocprof import draw_training, rocprof_json
from tests.support.traces import document, event
from tests.support.waiting import PATIENCE
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.session import Root, Session

WINDOW = document([event("gpu0 kernel gemm 10 20 stream=1")])
RUN = draw_training(2)
STEPS, TOTAL = 3, 500


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for rank in (0, 1):
        lines = [line(step, iteration(rank), TOTAL, rank=rank) for step in range(STEPS)]
        write(tmp_path / "artifacts", rank, lines)
        torch = tmp_path / "artifacts" / "torch_profiler" / f"rank{rank}"
        torch.mkdir(parents=True)
        (torch / f"host_{rank}.1700000000000.pt.trace.json").write_bytes(WINDOW)
        (torch / "trace_step2.json").write_bytes(WINDOW)
    tool = tmp_path / "artifacts" / "rocprof" / "host"
    tool.mkdir(parents=True)
    (tool / "77_results.json").write_bytes(rocprof_json(RUN))
    return tmp_path


def ask(session: Session, view: str, run: str, worker: str | None = None) -> Any:
    answer = session.view(view, run, worker, wait=True, timeout=PATIENCE)
    assert answer.payload is not None
    return json.loads(answer.payload)


def test_each_kind_of_file_is_a_run_and_every_file_opens(folder: Path) -> None:
    with Session([Root(str(folder))], Settings(cache_bytes=0)) as session:
        catalog = session.scan()
        assert catalog.others == ()
        assert {
            run.name: [(worker.name, worker.rank, len(worker.spans)) for worker in run.workers]
            for run in catalog.runs
        } == {
            "artifacts": [("rank0", 0, 1), ("rank1", 1, 1)],
            "artifacts/rocprof/host": [("77", None, 1)],
            "artifacts/torch_profiler": [("rank0", 0, 1), ("rank1", 1, 1)],
        }
        kernels = ask(session, "kernels", run="artifacts/rocprof/host")["rows"]
        assert sum(row["total_ns"] for row in kernels) == sum(each.end - each.start for each in RUN.dispatches)
        assert ask(session, "kernels", run="artifacts/torch_profiler")["rows"][0]["total_ns"] == 20_000


@pytest.mark.parametrize("rank", [0, 1])
def test_every_range_is_on_the_timeline(folder: Path, rank: int) -> None:
    ranges = iteration(rank)
    with Session([Root(str(folder))], Settings(cache_bytes=0)) as session:
        session.scan()
        timeline = ask(session, "trace", run="artifacts", worker=f"rank{rank}")
        overlap = ask(session, "overlap", run="artifacts")
    segments = [each for each in count_ranges(ranges, TOTAL)["active_segments"] if each["active_streams"]]
    assert timeline["counts"]["slices"] == STEPS * (len(ranges) + len(segments) + 1)  # and the iteration itself
    (row,) = [row for row in overlap["ranks"] if row["rank"] == rank]
    assert row["compute_ns"] == 1000 * len(active(ranges, "compute"))
