"""Tables of rocprofv3 in a log folder: those of one process are one trace, whatever else lies there."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.ingest.rocprof.test_tables import remove_unknown
from tests.support.producers.rocpd import write_rocpd
from tests.support.producers.rocprof import KERNELS, RocprofRun, counters_csv, draw_training, rocprof_json
from tests.support.producers.rocprof_tables import tables
from tests.support.traces import read_bytes
from tests.support.views import ask
from tests.support.waiting import PATIENCE
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.cli.main import main
from torch_tb_profiler.session import Root, Session

RUN = draw_training(3)
TABLES = tables(RUN)


def write_files(folder: Path, run: RocprofRun = RUN, prefix: str = "4242_", packed: bool = False) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in tables(run).items():
        path = folder / f"{prefix}{name}.csv"
        if packed:
            path.with_suffix(".csv.gz").write_bytes(gzip.compress(text.encode()))
        else:
            path.write_text(text)
    return folder


def list_files(root: Path) -> tuple[dict[str, dict[str, list[str]]], list[str]]:
    """Return (run -> worker -> files, files of other tools)"""
    with Session([Root(str(root))], Settings(cache_bytes=0)) as session:
        catalog = session.scan()
    runs = {
        run.name: {worker.name: [span.file.name for span in worker.spans] for worker in run.workers}
        for run in catalog.runs
    }
    return runs, [file.name for each in catalog.others for file in each.files]


@pytest.mark.parametrize("packed", [False, True])
def test_the_tables_of_a_process_are_one_worker_with_an_overview(tmp_path: Path, packed: bool) -> None:
    write_files(tmp_path / "host", packed=packed)
    write_files(tmp_path / "host", draw_training(2), "7_", packed)
    end = ".gz" if packed else ""
    assert list_files(tmp_path) == (
        {"host": {"7": [f"7_kernel_trace.csv{end}"], "4242": [f"4242_kernel_trace.csv{end}"]}}, [],
    )  # fmt: skip
    with Session([Root(str(tmp_path))], Settings(cache_bytes=0)) as session:
        session.scan()
        payload = session.view("overview", "host", worker="4242", wait=True, timeout=PATIENCE).payload
    assert payload is not None
    actual, theirs = json.loads(payload), ask(read_bytes(rocprof_json(RUN)), "overview")
    assert (actual["average"], actual["steps"]) == (theirs["average"], theirs["steps"])
    assert actual["devices"][0]["name"] == "AMD Instinct MI300X"


def test_tables_without_a_prefix_are_one_recording(tmp_path: Path) -> None:
    write_files(tmp_path / "run", prefix="")
    assert list_files(tmp_path) == ({"run": {"worker": ["kernel_trace.csv"]}}, [])
    with Session([Root(str(tmp_path / "run/kernel_trace.csv"))], Settings(cache_bytes=0)) as session:
        (file,) = session.scan().runs[0].files()
    assert (file.name, file.tables) == ("kernel_trace.csv", ())


@pytest.mark.parametrize("view", ["distributed", "trace"])
def test_ranks_and_timeline_equal_those_of_json(tmp_path: Path, view: str) -> None:
    """Two processes, the second of which works longer."""
    runs = {"4242_": draw_training(2), "7_": draw_training(3)}
    for prefix, run in runs.items():
        write_files(tmp_path / "tables", run, prefix)
        (tmp_path / "json").mkdir(exist_ok=True)
        (tmp_path / f"json/{prefix}results.json").write_bytes(rocprof_json(run))
    answers = []
    for folder in ("tables", "json"):
        with Session([Root(str(tmp_path / folder))], Settings(cache_bytes=0)) as session:
            session.scan()
            payload = session.view(view, wait=True, timeout=PATIENCE).payload
        assert payload is not None
        # The tables do not hold the command of a process.
        answers.append(remove_unknown(json.loads(payload.replace(b"python train.py", b"process 4242"))))
    assert answers[0] == answers[1]


def test_a_recording_is_read_from_its_most_detailed_format(tmp_path: Path) -> None:
    for name in ("json", "db"):
        write_files(tmp_path / name)
    (tmp_path / "json/4242_results.json").write_bytes(rocprof_json(RUN))
    write_rocpd(tmp_path / "db/4242_results.db", RUN)
    runs, others = list_files(tmp_path)
    assert runs == {"json": {"4242": ["4242_results.json"]}, "db": {"4242": ["4242_results.db"]}}
    assert others == []


def test_files_without_a_table_of_records_are_listed_as_other_tools(tmp_path: Path) -> None:
    write_files(tmp_path)
    for name in TABLES:
        if name != "agent_info":
            (tmp_path / f"4242_{name}.csv").unlink()
    (tmp_path / "4242_kernel_trace.csv").write_bytes(b"")
    (tmp_path / "4242_scratch_memory_trace.csv").write_text(
        '"Kind","Operation","Agent_Id","Queue_Id","Thread_Id","Alloc_Flags","Start_Timestamp","End_Timestamp"\n'
    )
    assert list_files(tmp_path) == ({}, ["4242_agent_info.csv", "4242_scratch_memory_trace.csv"])


def test_a_file_with_the_name_of_a_table_and_other_content_is_not_one(tmp_path: Path) -> None:
    write_files(tmp_path)
    (tmp_path / "4242_agent_info.csv").write_text("agents,of,the,insurance\n1,2,3,4\n")
    (tmp_path / "4242_hip_api_trace.csv").write_text("calls\n")
    with Session([Root(str(tmp_path))], Settings(cache_bytes=0)) as session:
        (run,) = session.scan().runs
        payload = session.view("overview", wait=True, timeout=PATIENCE).payload
    assert {each.name for each in run.files()[0].tables} == {
        f"4242_{each}_trace.csv" for each in ("memory_copy", "hsa_api", "rccl_api", "marker_api")
    }
    assert payload is not None
    assert "line_unreadable" not in {note["kind"] for note in json.loads(payload)["health"]}


def test_a_table_beside_its_compressed_copy_counts_once(tmp_path: Path) -> None:
    write_files(tmp_path)
    write_files(tmp_path, packed=True)
    with Session([Root(str(tmp_path))], Settings(cache_bytes=0)) as session:
        (run,) = session.scan().runs
        payload = session.view("kernels", wait=True, timeout=PATIENCE).payload
    assert [each.name for each in run.files()] == ["4242_kernel_trace.csv"]
    assert payload is not None
    assert sum(row["calls"] for row in json.loads(payload)["rows"]) == len(RUN.dispatches)


def test_a_changed_table_is_read_again(tmp_path: Path) -> None:
    write_files(tmp_path)
    with Session([Root(str(tmp_path))], Settings(cache_bytes=0)) as session:
        before = session.scan().runs[0].workers[0].spans[0].file
        agents = tmp_path / "4242_agent_info.csv"
        agents.write_text(agents.read_text().replace("MI300X", "MI325X"))
        after = session.scan().runs[0].workers[0].spans[0].file
        assert (before.id.uri, before.id != after.id) == (after.id.uri, True)
        payload = session.view("overview", wait=True, timeout=PATIENCE).payload
    assert payload is not None
    assert json.loads(payload)["devices"][0]["name"] == "AMD Instinct MI325X"


def test_counter_tables_are_joined_with_the_kernels(tmp_path: Path) -> None:
    run = draw_training(2)
    run.dispatches[:] = [
        type(each)(**{**each.__dict__, "counters": {"SQ_WAVES": 10.0 + number}})
        for number, each in enumerate(run.dispatches)
    ]
    write_files(tmp_path, run)
    (tmp_path / "4242_counter_collection.csv").write_text(counters_csv(run))
    with Session([Root(str(tmp_path))], Settings(cache_bytes=0)) as session:
        catalog = session.scan()
        assert catalog.others == ()
        payload = session.view("kernels", wait=True, timeout=PATIENCE).payload
    assert payload is not None
    assert {row["name"]: row["calls"] for row in json.loads(payload)["rows"]} == dict.fromkeys(KERNELS, 2)
    (worker,) = catalog.runs[0].workers
    assert [each.name for each in worker.spans[0].file.counters] == ["4242_counter_collection.csv"]


def test_the_command_line_opens_a_table_and_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_files(tmp_path)
    assert main(["check", str(tmp_path)]) == 0
    assert "other tools" not in capsys.readouterr().out
    assert main(["view", "kernels", str(tmp_path / "4242_kernel_trace.csv")]) == 0
    assert KERNELS[0] in capsys.readouterr().out
