"""A server prefetches the first answers of all tabs of a trace that a user looks at."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import msgspec
import pytest

from tests.support.traces import document
from tests.support.waiting import PATIENCE, until
from torch_tb_profiler.analyses.operators import operator_table
from torch_tb_profiler.analyses.tracks import lanes
from torch_tb_profiler.base.memo import Memo
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.cache import Cache
from torch_tb_profiler.executors import JobExecutor
from torch_tb_profiler.session import FileState, Root, Session, jobs
from torch_tb_profiler.session.answers import Answer
from torch_tb_profiler.session.answers.answers import Preparation
from torch_tb_profiler.session.cache import tables
from torch_tb_profiler.session.cache.entries import encode_json, entry_key
from torch_tb_profiler.view import TraceView, parse_params
from torch_tb_profiler.views import find_view
from torch_tb_profiler.views.operators import build

SLUGS = ("overview", "operators", "kernels", "trace")


class Queue(JobExecutor):
    """An executor that holds jobs until the test runs them."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.jobs.append((future, fn, args))
        return future

    def run_first(self) -> str:
        """Run the oldest job; return the slug of its view, or "file"."""
        future, fn, args = self.jobs.pop(0)
        future.set_result(fn(*args))
        return "file" if fn is jobs.load_in_worker else str(args[2])


@pytest.fixture
def log(tmp_path: Path) -> str:
    events = [
        {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 0, "dur": 5},
        {"ph": "X", "cat": "kernel", "name": "add", "pid": 0, "tid": 7, "ts": 6, "dur": 5, "args": {"stream": 7}},
    ]
    for worker in ("one", "two"):
        (tmp_path / f"{worker}.1.pt.trace.json").write_bytes(document(events))
    return str(tmp_path)


@pytest.fixture
def serving(log: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Session, Queue, Settings]]:
    queue = Queue()
    monkeypatch.setattr("torch_tb_profiler.executors.make_executor", lambda *_: queue)
    settings = replace(Settings.from_environment(), small_file_bytes=0)
    with Session([Root(log)], settings) as session:
        session._files.prefetches = True
        session.scan()
        yield session, queue, settings


Serving = tuple[Session, Queue, Settings]


def prefetch_all(session: Session, queue: Queue) -> None:
    """Load worker `one`, look at it, and run all jobs that prefetch its answers."""
    session.view("overview/preview", worker="one")
    queue.run_first()
    session.view("overview/preview", worker="one")
    while queue.jobs:
        queue.run_first()
    until(lambda: not preparing_threads())


def preparing_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "profiler-prepare"}


def test_first_answers_are_prefetched_once_a_user_looks_and_a_file_is_loaded_in_between(serving: Serving) -> None:
    session, queue, settings = serving
    session.view("overview", worker="one")
    assert queue.run_first() == "file" and not queue.jobs, "no answer has been shown yet"
    assert session.view("overview/preview", worker="one").payload
    session.view("overview/preview", worker="two")
    slugs = {queue.run_first()}
    assert queue.run_first() == "file", "the file waits for one answer only"
    while queue.jobs:
        slugs.add(queue.run_first())
    assert {*SLUGS} <= slugs
    target, cache = session.find(None, "one", None), Cache.from_settings(settings)
    trace = cache.load_trace(entry_key(target.file.id))
    for slug in SLUGS:
        cached = session._files.result(target.file.id, slug, None)
        view: Any = find_view(slug)
        assert cached == encode_json(view.build(trace, view.params())), slug
        assert session.view(slug, worker="one").payload == cached


def test_a_cached_answer_is_not_built_again(serving: Serving) -> None:
    session, queue, _ = serving
    session.view("overview")
    queue.run_first()
    session.view("overview/preview")
    while queue.jobs:
        queue.run_first()
    session._files._files.clear()
    assert session.view("overview").payload
    assert not queue.jobs


def test_an_answer_that_could_not_be_prefetched_is_built_on_request(
    serving: Serving, caplog: pytest.LogCaptureFixture
) -> None:
    session, queue, _ = serving
    session.view("overview")
    queue.run_first()
    assert session.view("overview/preview").payload
    future, *_ = queue.jobs.pop()
    future.set_exception(MemoryError())
    assert not queue.jobs and "prefetching an answer failed" in caplog.text
    assert session.view("operators").payload


def test_a_command_prefetches_nothing(serving: Serving) -> None:
    session, queue, _ = serving
    session._files.prefetches = False
    session.view("overview")
    queue.run_first()
    assert session.view("overview/preview").payload and not queue.jobs


def test_workers_prefetch_answers(log: str) -> None:
    settings = replace(Settings.from_environment(), small_file_bytes=0, executor="processes:1")
    with Session([Root(log)], settings) as session:
        session.start()
        until(lambda: session.scanned)
        answer = until(lambda: session.view("overview/preview", wait=True, timeout=PATIENCE).payload)
        assert answer is not None
        file = session.find(None, None, None).file.id
        summary = session._files.summary(file)
        assert summary is not None
        last = jobs.prefetched_views(summary.unavailable.keys())[-1]
        until(lambda: session._files.result(file, last, None))


@pytest.mark.parametrize("kernel", [True, False])
def test_the_preview_is_cached_as_the_overview_if_it_is_complete(log: str, serving: Serving, kernel: bool) -> None:
    session, queue, settings = serving
    if not kernel:
        event = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 0, "dur": 5}
        (Path(log) / "one.1.pt.trace.json").write_bytes(document([event]))
        session.scan()
    session.view("overview/preview", worker="one")
    queue.run_first()
    target, cache = session.find(None, "one", None), Cache.from_settings(settings)
    cached = session._files.result(target.file.id, "overview", None)
    if kernel:
        assert cached is None
    else:
        trace, view = cache.load_trace(entry_key(target.file.id)), find_view("overview")
        assert (
            trace is not None
            and isinstance(view, TraceView)
            and cached == encode_json(view.build(trace, view.params()))
        )


def test_the_first_requests_of_a_timeline_are_answered_without_the_trace(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, queue, settings = serving
    prefetch_all(session, queue)
    target, cache = session.find(None, "one", None), Cache.from_settings(settings)
    trace = cache.load_trace(entry_key(target.file.id))
    opened: list[str] = []

    def open_(*_: object) -> tuple[FileState, Any]:
        opened.append("trace")
        return FileState("ready"), trace

    monkeypatch.setattr(session._files, "open", open_)
    for slug in ("trace/tile", "trace/counters", "trace/headline"):
        view: Any = find_view(slug)
        first_params = view.first(trace)
        assert first_params
        for params in first_params:
            requested = {name: str(value) for name, value in msgspec.to_builtins(params).items() if value != ""}
            requested.pop("python", None)
            assert session.view(slug, worker="one", params=requested).payload == encode_json(
                view.build(trace, params)
            )
    assert not opened
    assert session.view("trace/tile", worker="one", params={"begin": "0", "end": "7"}).payload and opened


def test_an_answer_that_a_worker_is_building_is_not_built_twice(serving: Serving) -> None:
    """The worker may be halfway through; if both built it, both would take twice as long."""
    session, queue, _ = serving
    session.view("overview/preview", worker="one")
    queue.run_first()
    session.view("overview/preview", worker="one")
    (future, _, arguments), *_ = queue.jobs
    assert arguments[2] == "overview" and future.set_running_or_notify_cancel()
    assert session.view("overview", worker="one").state.state == "loading"
    assert session.view("operators", worker="one").payload, "that one is not being built"
    assert session.view("overview", worker="one", wait=True).payload
    queue.run_first()
    assert session.view("overview", worker="one").payload
    assert session.view("overview", worker="one").state.state == "ready"


@pytest.mark.parametrize(("slug", "params"), [("operators", {"phase": "backward"}), ("trace", {"python": "true"})])
def test_a_filter_that_takes_long_is_prefetched(
    serving: Serving, monkeypatch: pytest.MonkeyPatch, slug: str, params: dict[str, str]
) -> None:
    session, queue, _ = serving
    prefetch_all(session, queue)
    trace, view = session.trace(worker="one")[1], find_view(slug)
    assert trace is not None and isinstance(view, TraceView)
    built = encode_json(view.build(trace, parse_params(view.params, params)))
    monkeypatch.setattr(session._files, "open", lambda *_: pytest.fail("the answer was built again"))
    assert session.view(slug, worker="one", params=params).payload == built


def test_a_zoom_of_a_cached_timeline_takes_its_lanes_from_the_cache(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, queue, _ = serving
    prefetch_all(session, queue)
    session._files._open.keep_only(frozenset())
    window = {"begin": "0", "end": "7000", "width": "64"}
    view: Any = find_view("trace/tile")
    trace = session.trace(worker="one")[1]
    assert trace is not None
    expected = encode_json(view.build(msgspec.structs.replace(trace, _memo=Memo()), view.params(0, 7000, 64)))
    monkeypatch.setattr(lanes, "_build_lane_order", lambda *_: pytest.fail("the lanes were derived again"))
    counters: Any = find_view("trace/counters")
    counted = encode_json(
        counters.build(msgspec.structs.replace(trace, _memo=Memo()), counters.params(0, 7000, 64))
    )
    assert session.view("trace/tile", worker="one", params=window).payload == expected
    assert session.view("trace/counters", worker="one", params=window).payload == counted
    passes = ("kinds.kinds", "tracks.tracks", "families.kernel_names", "events.memory_records")
    tables: list[Any] = [*trace._memo]
    assert not [table for table, *_ in tables if table.endswith(passes)], "no pass over all events"
    assert session.view("trace", worker="one").payload


def test_the_tab_that_was_opened_last_is_prepared_first() -> None:
    order: list[str] = []
    release = threading.Event()

    class BlockingPreparation(Preparation):
        def _prepare(self, file: Any, part: int | None, slug: str) -> None:
            order.append(slug)
            assert release.wait(PATIENCE)

    files, targets = MagicMock(), MagicMock()
    preparation = BlockingPreparation(files, targets)
    for slug in ("operators", "kernels", "trace", "kernels"):
        preparation.start(Answer(slug, "run", "one", "1", FileState("ready"), b""))
        until(lambda: order)
    release.set()
    until(lambda: not preparing_threads())
    assert order == ["operators", "trace", "kernels"]


@pytest.mark.parametrize("prefetches", [True, False])
def test_the_tables_that_filters_need_are_derived_after_a_cached_answer(
    serving: Serving, prefetches: bool
) -> None:
    session, queue, _ = serving
    prefetch_all(session, queue)
    session._files.prefetches = prefetches
    file = session.find(None, "one", None).file.id
    session._files._open.keep_only(frozenset())
    assert session.view("operators", worker="one").payload
    if prefetches:
        trace: Any = until(lambda: session._files._open.get(file, None))
        until(lambda: not preparing_threads())
        ready = set(trace._memo)
        for filters in ({"phase": "backward"}, {"phase": "optimizer"}, {"group_by": "module"}):
            assert session.view("operators", worker="one", params=filters).payload
        assert set(trace._memo) == ready, "the first request with each filter derives nothing more"
    else:
        assert not preparing_threads() and session._files._open.get(file, None) is None


def test_what_filters_need_of_a_large_trace_is_left_in_the_cache_after_a_cached_answer(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A filter that is sent at once would share the processor with what it doesn't need."""
    monkeypatch.setattr(tables, "MIN_EVENTS", 0)
    session, queue, _ = serving
    prefetch_all(session, queue)
    session._files._open.keep_only(frozenset())
    built: list[object] = []
    view: Any = find_view("operators")

    def build_table(*parameters: Any) -> Any:
        built.append(parameters[1:])
        return operator_table(*parameters)

    monkeypatch.setattr(build, "operator_table", build_table)
    assert session.view("operators", worker="one").payload
    until(lambda: built and not preparing_threads())
    assert len(built) == 1 and view.filters


def test_nothing_is_derived_after_an_overview_which_has_no_parameters(serving: Serving) -> None:
    session, queue, _ = serving
    session.view("overview/preview", worker="one")
    queue.run_first()
    session._files._open.keep_only(frozenset())
    assert session.view("overview/preview", worker="one").payload
    until(lambda: not preparing_threads())
    assert session._files._open.get(session.find(None, "one", None).file.id, None) is None
