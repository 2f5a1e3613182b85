"""Names of runs in files of trackers, drawn: a damaged file names none, and its traces are still listed."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tests.discovery.test_catalog import put
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.session import open_session

RUN = "73a112eebb08400798b0f51cc0db70d5"
WANDB = "wandb/offline-run-20261126_042914-flg6p9h8"
TRACE = "host.1700000000000.pt.trace.json"


def names(folder: Path) -> dict[str, str | None]:
    with open_session(str(folder), Settings(executor="serial", cache_dir="")) as session:
        return {run.name: run.tracker_name for run in session.catalog.runs}


def wandb_file(name: str, *, before: int = 0) -> bytes:
    """Return W&B's file: a header, a record of so many bytes, and the record of a run, in blocks of 32 KiB."""

    def message(field: int, content: bytes) -> bytes:
        tag, size = field << 3 | 2, len(content)
        varints = [
            bytes([value]) if value < 128 else bytes([value & 127 | 128, value >> 7]) for value in (tag, size)
        ]
        return b"".join(varints) + content

    data = bytearray(b":W&B\x1c\xe6\x00")
    for record in (b"\x08\x01" * (before // 2), message(17, message(1, b"flg6p9h8") + message(8, name.encode()))):
        at = 0
        while at < len(record):
            room = 32768 - len(data) % 32768
            if room < 7:
                data += bytes(room)
                continue
            part = record[at : at + room - 7]
            last = at + len(part) == len(record)
            kind = (1 if last else 2) if at == 0 else (4 if last else 3)
            data += bytes(4) + len(part).to_bytes(2, "little") + bytes([kind]) + part
            at += len(part)
    return bytes(data)


@pytest.mark.parametrize("before", [0, 32744, 40_000, 70_000])
def test_a_name_in_any_block_of_wandb_is_read(tmp_path: Path, before: int) -> None:
    put(tmp_path, f"{WANDB}/files/pytorch_traces/{TRACE}")
    put(tmp_path, f"{WANDB}/run-flg6p9h8.wandb", content=wandb_file("bert, batch 64", before=before))
    assert names(tmp_path) == {f"{WANDB}/files/pytorch_traces": "bert, batch 64"}


@pytest.mark.parametrize("content", [b"", b"?" * 100, b":W&B\x1c\xe6\x00" + b"\xff" * 100, wandb_file("x")[:-3]])
def test_a_damaged_file_of_wandb_names_no_run(tmp_path: Path, content: bytes) -> None:
    put(tmp_path, f"{WANDB}/files/pytorch_traces/{TRACE}")
    put(tmp_path, f"{WANDB}/run-flg6p9h8.wandb", content=content)
    assert names(tmp_path) == {f"{WANDB}/files/pytorch_traces": None}


def test_the_link_to_the_latest_run_lists_it_once(tmp_path: Path) -> None:
    put(tmp_path, f"{WANDB}/files/pytorch_traces/{TRACE}")
    (tmp_path / "wandb" / "latest-run").symlink_to(tmp_path / WANDB)
    assert list(names(tmp_path)) == [f"{WANDB}/files/pytorch_traces"]
    assert list(names(tmp_path / "wandb")) == [f"{Path(WANDB).name}/files/pytorch_traces"]
    put(tmp_path, f"other/latest-run/{TRACE}")
    assert "other/latest-run" in names(tmp_path)


def test_mlflow_names_a_run_in_a_file_or_in_its_database(tmp_path: Path) -> None:
    put(tmp_path, f"mlruns/7/{RUN}/artifacts/traces/{TRACE}")
    put(tmp_path, f"mlruns/7/{RUN}/tags/mlflow.runName", content="süß\n".encode())
    put(tmp_path, f"server/mlartifacts/7/{RUN}/artifacts/{TRACE}")
    with sqlite3.connect(tmp_path / "server" / "mlflow.db") as connection:
        connection.execute("CREATE TABLE runs (run_uuid TEXT, name TEXT)")
        connection.execute("INSERT INTO runs VALUES (?, ?), (?, ?)", (RUN, "batch 64", RUN[::-1], "another"))
    connection.close()
    put(tmp_path, f"server/mlartifacts/7/{RUN[::-1]}/artifacts/rank0/{TRACE}")
    put(tmp_path, f"server/mlartifacts/7/{'0' * 32}/artifacts/{TRACE}")
    assert names(tmp_path) == {
        f"mlruns/7/{RUN}/artifacts/traces": "süß",
        f"server/mlartifacts/7/{RUN}/artifacts": "batch 64",
        f"server/mlartifacts/7/{RUN[::-1]}/artifacts": "another",
        f"server/mlartifacts/7/{'0' * 32}/artifacts": None,
    }


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0" + bytes(200)])
def test_a_damaged_database_names_no_run(tmp_path: Path, content: bytes) -> None:
    put(tmp_path, f"mlruns/7/{RUN}/artifacts/{TRACE}")
    put(tmp_path, "mlflow.db", content=content)
    assert names(tmp_path) == {f"mlruns/7/{RUN}/artifacts": None}


def test_ranks_of_ray_train_are_workers_of_one_run(tmp_path: Path) -> None:
    for rank in (0, 1):
        put(tmp_path, f"ray_results/bert/rank{rank}/{TRACE}")
    with open_session(str(tmp_path), Settings(executor="serial", cache_dir="")) as session:
        (run,) = session.catalog.runs
    assert (run.name, [worker.rank for worker in run.workers]) == ("ray_results/bert", [0, 1])
