"""A folder of rocprofv3's files, opened as every other one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.producers.rocpd import write_rocpd
from tests.support.producers.rocprof import draw_training, rocprof_json
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.cli.main import main
from torch_tb_profiler.session import Root, Session

RUN = draw_training(2)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("both/host", "old/host"):
        (tmp_path / name).mkdir(parents=True)
    write_rocpd(tmp_path / "both/host/4242_results.db", RUN)
    (tmp_path / "both/host/4242_results.json").write_bytes(rocprof_json(RUN))
    (tmp_path / "old/host/7_results.json").write_bytes(rocprof_json(RUN, streams=False))
    (tmp_path / "old/host/notes.db").write_bytes(b"?")
    return tmp_path


def test_one_recording_in_two_formats_is_one_span_of_one_worker(folder: Path) -> None:
    with Session([Root(str(folder))], Settings(cache_bytes=0)) as session:
        catalog = session.scan()
        found = {
            run.name: [(each.name, [s.file.name for s in each.spans]) for each in run.workers]
            for run in catalog.runs
        }
        assert found == {
            "both/host": [("4242", ["4242_results.db"])],
            "old/host": [("7", ["7_results.json"])],
        }
        assert catalog.others == ()
        payload = session.view("overview", "both/host", wait=True).payload
        assert payload is not None
        configuration = json.loads(payload)["configuration"]
        assert (configuration["rank"], configuration["world_size"]) == (3, 8)


def test_the_command_line_lists_and_checks_databases(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", str(folder), "--format", "json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [(row["run"], row["worker"]) for row in listed["rows"]] == [("both/host", "4242"), ("old/host", "7")]
    assert "other_files" not in listed
    assert main(["check", str(folder / "both/host/4242_results.db")]) == 0
    assert "skipped" not in capsys.readouterr().out


def cut_off(path: Path) -> None:
    """Leave half of a file, as a process that was killed while it wrote does."""
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def open_run(folder: Path, cache: Path) -> tuple[str, int | None, list[str]]:
    """Return state, number of events and health notes of the only span of a run."""
    with Session([Root(str(folder))], Settings(cache_dir=str(cache))) as session:
        ((worker,),) = [run.workers for run in session.scan().runs]
        (span,) = worker.spans
        session.wait(session.load(span))
        state = session.state(span)
        return state.state, state.events, [note.message for note in session.health(span)]


def test_a_broken_database_is_replaced_by_the_readable_format_beside_it(folder: Path, tmp_path: Path) -> None:
    host = folder / "both/host"
    cut_off(host / "4242_results.db")
    state, events, notes = open_run(folder / "both", tmp_path / "cache")
    with Session([Root(str(host / "4242_results.json"))], Settings(cache_bytes=0)) as session:
        (span,) = session.scan().runs[0].workers[0].spans
        session.wait(session.load(span))
        assert (state, events) == ("ready", session.state(span).events)
    (note,) = [each for each in notes if "4242_results.db" in each]
    assert note.startswith("4242_results.db can't be read (")
    assert note.endswith("): this is 4242_results.json, the same recording")

    cut_off(host / "4242_results.json")
    (host / "4242_results.json").write_bytes(b'{"rocprofiler-sdk-tool": [')
    state, _, _ = open_run(folder / "both", tmp_path / "cache")
    assert state == "failed"


def test_a_broken_format_beside_a_readable_database_costs_nothing(folder: Path, tmp_path: Path) -> None:
    cut_off(folder / "both/host/4242_results.json")
    state, events, notes = open_run(folder / "both", tmp_path / "cache")
    assert state == "ready" and events and not any("results" in each for each in notes)
