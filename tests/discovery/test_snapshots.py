"""Snapshots alone are a run: their names say process and moment, their first bytes that they are snapshots."""

from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path

import pytest

from tests.support.snapshots import snapshot
from tests.support.waiting import PATIENCE
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.cli import main
from torch_tb_profiler.discovery.snapshots import snapshot_place
from torch_tb_profiler.session import Root, Session

SNAPSHOT = pickle.dumps(snapshot())


@pytest.mark.parametrize(
    ("path", "run", "worker", "rank", "stamp"),
    [
        ("out/iteration_10/rank0_memory_snapshot.pickle", "out", "rank0", 0, "10"),
        ("out/iteration_10_oom/rank12_memory_snapshot.pickle", "out", "rank12", 12, "10 oom"),
        ("memory_snapshot-rank3.pickle", "", "rank3", 3, None),
        ("prof_memsnap_r3.pkl", "", "rank3", 3, None),
        ("rank0.120.memory_snapshot.pickle", "", "rank0", 0, "120"),
        ("node17_Nov_25_20_33_32.pickle", "", "node17", None, "Nov_25_20_33_32"),
        ("1732000000.123-TP-0-memory.pickle", "", "TP-0", None, "1732000000.123"),
        ("memory_snapshot_100.pickle", "", "memory_snapshot", None, "100"),
        ("rank3/snapshot.pickle.gz", "", "rank3", 3, None),
        ("a/rank_1/oom_2.pickle", "a", "rank1", 1, "2"),
        ("snapshot_rank0_step100.pickle", "", "rank0", 0, "100"),
        ("before.pickle", "", "process", None, None),
        ("resnet50.pickle", "", "process", None, None),
    ],
)
def test_names_say_run_worker_and_moment(
    path: str, run: str, worker: str, rank: int | None, stamp: str | None
) -> None:
    assert tuple(snapshot_place(path)) == (run, worker, rank, stamp)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for step in (2, 10):
        for rank in (0, 1):
            file = tmp_path / "out" / f"iteration_{step}" / f"rank{rank}_memory_snapshot.pickle"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(SNAPSHOT)
    file.rename(file.with_suffix(".pickle.gz"))
    file.with_suffix(".pickle.gz").write_bytes(gzip.compress(SNAPSHOT))
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "model.pickle").write_bytes(pickle.dumps({"weights": [1, 2, 3]}))
    return tmp_path


def test_snapshots_alone_are_a_run_and_other_pickles_are_none(folder: Path) -> None:
    with Session([Root(str(folder))], Settings(cache_bytes=0)) as session:
        (run,) = session.scan().runs
        assert run.name == "out"
        assert [(w.name, w.rank, [s.label for s in w.spans]) for w in run.workers] == [
            ("rank0", 0, ["2", "10"]),
            ("rank1", 1, ["2", "10"]),
        ]
        assert [file.name for file in run.memory_files][1] == "iteration_10/rank1_memory_snapshot.pickle.gz"
        for worker in ("rank0", "rank1"):
            answer = session.view("memory/snapshot", "out", worker, "2", wait=True, timeout=PATIENCE)
            assert (answer.worker, answer.span) == (worker, "2") and answer.payload is not None
            assert json.loads(answer.payload)["devices"][0]["reserved_bytes"] == 4096
        reasons = session.unavailable(session.find("out", "rank1", "2"))
        assert reasons is not None and "memory" not in reasons and "trace" in reasons["operators"]


def test_the_command_line_opens_a_snapshot_by_its_path(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = folder / "out" / "iteration_2" / "rank1_memory_snapshot.pickle"
    assert main(["view", "memory/snapshot", str(file)]) == 0
    assert json.loads(capsys.readouterr().out)["devices"][0]["allocated_bytes"] == 1536
    assert main(["summary", str(folder / "out")]) == 0
    assert "Out of memory on GPU 0: 954 MiB requested, 77 B free" in capsys.readouterr().out
    assert main(["check", str(file)]) == 0


def test_a_truncated_snapshot_gives_what_was_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for cut in (0.6, 0.9):
        (tmp_path / "oom.pickle").write_bytes(SNAPSHOT[: int(len(SNAPSHOT) * cut)])
        assert main(["view", "memory/snapshot", str(tmp_path)]) == 0
        payload = json.loads(capsys.readouterr().out)
        assert 0 < payload["devices"][0]["entries"] < 9 or payload["devices"][0]["blocks"] == 5
        assert "truncated" in payload["reasons"]["incomplete"][0]["text"]
