"""A log folder of 1,000 runs with 8 workers each: listed at once, nothing parsed, memory bounded."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import pytest
from werkzeug.test import Client

from benchmarks.logdir import PAGE, write_log
from tests.support.logs import write_log as write_small_log
from tests.support.waiting import PATIENCE
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.http import App
from torch_tb_profiler.session import Root, Session, open_traces
from torch_tb_profiler.storage.local import LocalLocation

RUNS, WORKERS = 1000, 8


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    log = tmp_path_factory.mktemp("many")
    write_log(log, RUNS, WORKERS)
    return log


@pytest.mark.slow
def test_listing_and_first_page(many: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """How long it takes is measured in benchmarks/logdir.py; here: no file is opened for it."""
    opened: list[str] = []
    read = LocalLocation.open

    def open_noted(location: LocalLocation, path: str) -> BinaryIO:
        opened.append(path)
        return read(location, path)

    monkeypatch.setattr(LocalLocation, "open", open_noted)
    with Session([Root(str(many))], Settings.from_environment()) as session:
        session.scan()
        session.scan()
        client = Client(App(session))
        answers = [client.get(f"/{route}") for route in PAGE]
        assert [answer.status_code for answer in answers] == [200] * len(PAGE)
        runs = json.loads(answers[0].get_data())["runs"]
        assert len(runs) == RUNS
        assert {run["files"]["waiting"] for run in runs} == {WORKERS}
    assert opened == []


def test_open_traces_are_closed_beyond_the_memory_setting(tmp_path: Path) -> None:
    log = write_small_log(tmp_path / "log", workers=6, count=2000)
    each = open_traces.BYTES_PER_TRACE + 8100 * open_traces.BYTES_PER_EVENT
    settings = replace(Settings.from_environment(), small_file_bytes=0, executor="serial", memory_bytes=2 * each)
    with Session([Root(str(log))], settings) as session:
        session.scan()
        for _ in range(2):
            for worker in session.catalog.run(None).workers:
                answer = session.view("operators", worker=worker.name, wait=True, timeout=PATIENCE)
                assert answer.payload is not None
                assert len(session._files._open) <= 2
