"""Runs from Python: their names, their defaults, what is said where something is wrong."""

from __future__ import annotations

import ast
import gc
import inspect
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import pytest

import torch_tb_profiler as ttp
from tests.support.logs import write_log
from tests.support.waiting import PATIENCE, until
from torch_tb_profiler.api import stubs
from torch_tb_profiler.api import views as methods
from torch_tb_profiler.api.shared_session import SharedSession
from torch_tb_profiler.base.errors import NotFoundError, UsageError
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.session import Root, Session


@pytest.fixture
def log(tmp_path: Path) -> ttp.Log:
    return ttp.open(str(write_log(tmp_path, runs=2, workers=2, count=40)))


def test_runs_and_workers_by_name(log: ttp.Log) -> None:
    assert list(log.runs) == list(log) == ["run0", "run1"] and len(log) == 2
    assert {name: run.name for name, run in log.runs.items()} == {"run0": "run0", "run1": "run1"}
    assert log.run().name == "run0"
    assert log["run1"].workers == {"w0": ["1"], "w1": ["1"]}
    with pytest.raises(NotFoundError) as failure:
        log["run2"]
    assert failure.value.hint == "runs: run0, run1"


def test_a_new_run_is_there_after_a_refresh(log: ttp.Log, tmp_path: Path) -> None:
    write_log(tmp_path, runs=3, workers=1, count=10)
    assert "run2" not in log.runs
    log.refresh()
    assert "run2" in log.runs


def test_the_first_worker_and_span_are_the_defaults(log: ttp.Log) -> None:
    run = log["run1"]
    plain = run.operators().to_dict()
    assert run.operators(worker="w0", span=1).to_dict() == plain
    assert run.operators(worker="w0", span="1").to_dict() == plain
    assert run.operators(worker="w1").to_dict() != plain


def test_the_parameters_are_those_that_the_view_declares(log: ttp.Log) -> None:
    given = inspect.signature(log.run().operators).parameters
    assert [*given] == ["worker", "span", "group_by", "step", "thread", "phase", "kernel", "family"]
    assert given["group_by"].default == "name"
    assert inspect.signature(log.run().operators.stacks).parameters["event"].default is inspect.Parameter.empty
    assert "base_run" in inspect.signature(log.run().diff).parameters
    assert log.run().operators(step="2").to_dict()["totals"] != log.run().operators().to_dict()["totals"]
    with pytest.raises(UsageError, match="unknown parameter 'wrong'"):
        log.run().operators(wrong=1)  # type: ignore[call-arg]
    with pytest.raises(UsageError, match="'group_by' cannot be 'color'"):
        log.run().operators(group_by="color")  # type: ignore[arg-type]


def test_lists_and_truth_values_are_taken_as_they_are(log: ttp.Log) -> None:
    shown = log.run().trace(python=True).to_dict()
    assert shown["python"] is True and log.run().trace(python=False).to_dict()["python"] is False
    every = [track.track for track in log.run().trace.selection(begin=0, end=10**9).data.tracks]
    (_, second) = every
    one = log.run().trace.selection(begin=0, end=10**9, tracks=[second])  # type: ignore[arg-type]
    assert [track.track for track in one.data.tracks] == [second]
    assert log.run().operators(step=None).to_dict() == log.run().operators().to_dict()  # type: ignore[arg-type]


def test_the_methods_are_typed_as_the_views_declare_them() -> None:
    written = Path(inspect.getfile(methods)).with_suffix(".pyi").read_text(encoding="utf-8")
    assert ast.dump(ast.parse(written)) == ast.dump(ast.parse(stubs.generate_stubs())), stubs.__doc__


def test_what_is_no_view_is_no_attribute(log: ttp.Log) -> None:
    with pytest.raises(AttributeError):
        log.run().nothing  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match="has no part 'nothing'"):
        log.run().operators.nothing()  # type: ignore[attr-defined]
    assert {"operators", "diff", "name", "columns"} <= set(dir(log.run()))


def test_a_broken_trace_raises_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "w.pt.trace.json").write_bytes(b"[")
    run = ttp.open(str(tmp_path)).run()
    for ask in (run.overview, run.columns):
        with pytest.raises(ttp.ProfilerError) as failure:
            ask()
        assert "w.pt.trace.json" in str(failure.value.where)


def test_a_place_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ttp.ProfilerError, match="no such"):
        ttp.open(str(tmp_path / "nothing"))


def test_a_closed_log_says_so(log: ttp.Log) -> None:
    run, ask = log.run(), log.run().overview
    with log:
        ask()
    for closed in (ask, run.columns, lambda: run.workers, lambda: log.runs):
        with pytest.raises(UsageError, match="the log is closed"):
            closed()


def test_what_is_used_keeps_the_log_open_and_the_last_one_closes_it(tmp_path: Path) -> None:
    assert ttp.open(str(write_log(tmp_path, count=10))).run().overview().data.steps
    log = ttp.open(str(tmp_path))
    session, ask = weakref.ref(log.run()._shared.session), log.run().overview
    del log
    gc.collect()
    assert ask().data.steps
    del ask
    gc.collect()
    assert until(lambda: session() is None)


def test_collecting_a_log_waits_for_nothing(tmp_path: Path) -> None:
    """Garbage is collected at any place, also in a thread that holds what closing waits for."""
    may_close, closed_by = threading.Event(), list[threading.Thread]()

    class Waiting(Session):
        def close(self) -> None:
            assert may_close.wait(PATIENCE)
            super().close()
            closed_by.append(threading.current_thread())

    shared = SharedSession(Waiting([Root(str(write_log(tmp_path, count=10)))], Settings()))
    del shared
    gc.collect()
    assert not closed_by
    may_close.set()
    assert until(lambda: bool(closed_by))
    assert closed_by != [threading.current_thread()]


def test_a_log_that_is_closed_by_hand_is_closed_once_and_here(tmp_path: Path) -> None:
    closed_by = []

    class Counted(Session):
        def close(self) -> None:
            super().close()
            closed_by.append(threading.current_thread())

    shared = SharedSession(Counted([Root(str(write_log(tmp_path, count=10)))], Settings()))
    shared.close()
    shared.close()
    assert closed_by == [threading.current_thread()]


def test_a_log_that_is_still_open_does_not_keep_python_from_ending(tmp_path: Path) -> None:
    place = write_log(tmp_path, count=10)
    code = f"import torch_tb_profiler as ttp; print(len(ttp.open({str(place)!r}).run().overview().data.steps))"
    program = f"import torch_tb_profiler as ttp; log = ttp.open({str(place)!r}); ask = log.run().overview; ask()"
    for text in (code, program):
        ended = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=PATIENCE)
        assert (ended.returncode, ended.stderr) == (0, "")
