"""Files that are loaded while a pair of them is requested."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.session.test_session import merged_file
from tests.support.views import add_tab
from tests.support.waiting import PATIENCE
from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.model.devices import devices
from torch_tb_profiler.model.trace import TracePair
from torch_tb_profiler.session import Root, Session
from torch_tb_profiler.session.targets import RequestedNames, Target
from torch_tb_profiler.view import NoParams, PairView, Tab


@dataclass(frozen=True)
class Devices:
    candidate: list[list[int]]
    base: list[list[int]]


def devices_of(pair: TracePair, params: NoParams) -> Devices:
    return Devices(
        *([[device.id for device in devices(trace)] for trace in side] for side in (pair.candidate, pair.base))
    )


PAIR = PairView("two", "Two", NoParams, Devices, devices_of)


def test_a_merged_file_that_is_loaded_during_a_request_gives_two_ranks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found before its file is read, opened after: then it is its first rank, compared with the second one."""
    add_tab(monkeypatch, Tab("Compare", PAIR))
    merged_file(tmp_path)
    with Session([Root(str(tmp_path))], Settings(cache_bytes=0)) as session:
        session.scan()
        targets = session._targets
        before, ready = targets.find(RequestedNames()), targets.resolve_and_request
        stale = [before, before]

        def late(names: RequestedNames, wait: bool, timeout: float | None) -> Target:
            found = ready(names, True, PATIENCE)
            return stale.pop() if stale else found

        monkeypatch.setattr(targets, "resolve_and_request", late)
        answer = session.view("two", wait=True, timeout=PATIENCE)
        assert not stale
        assert (answer.worker, answer.base and answer.base.worker) == ("node0/rank0", "node0/rank1")
        assert answer.payload is not None
        assert json.loads(answer.payload) == {"candidate": [[0]], "base": [[1]]}


def test_two_names_of_one_recording_are_refused_once_its_file_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_tab(monkeypatch, Tab("Compare", PAIR))
    merged_file(tmp_path)
    with Session([Root(str(tmp_path))], Settings(cache_bytes=0)) as session:
        session.scan()
        run = session.catalog.runs[0].name
        named = {"also": json.dumps([[run, "node0/rank0", None]]), "base_run": run, "base_worker": "node0/rank1"}
        with pytest.raises(UsageError, match="twice"):
            session.view("two", run=run, params=named, wait=True, timeout=PATIENCE)
