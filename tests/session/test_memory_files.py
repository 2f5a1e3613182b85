"""Memory files next to traces are listed with their run and opened by number, never by a path of the request."""

from __future__ import annotations

import gzip
import json
import pickle
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from werkzeug.test import Client

from tests.support.memory_traces import memory
from tests.support.snapshots import entry, snapshot
from tests.support.traces import document
from tests.support.waiting import PATIENCE
from torch_tb_profiler.base.errors import NotFoundError, TraceError, UsageError
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.cache import Cache
from torch_tb_profiler.http import App
from torch_tb_profiler.ingest import read_trace
from torch_tb_profiler.ingest.memory.native import reader
from torch_tb_profiler.ingest.memory.native.reader import open_library
from torch_tb_profiler.ingest.runtime import receive_preview
from torch_tb_profiler.session import Root, Session, jobs
from torch_tb_profiler.session.cache.entries import entry_key, preview_key
from torch_tb_profiler.session.files import RequestedFiles
from torch_tb_profiler.session.loading import Loader
from torch_tb_profiler.session.state import FileState

TRACE = document([{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1}])
TIMELINE = json.dumps([[-1, 1, 400, 0], [1000, 2, 100, 4], [2000, 4, -100, 4]]).encode()


class Evil:
    def __reduce__(self) -> Any:
        return print, ("called",)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    run = tmp_path / "run"
    (run / "rank0").mkdir(parents=True)
    (run / "w.1.pt.trace.json").write_bytes(TRACE)
    (run / "a.pickle").write_bytes(pickle.dumps(snapshot()))
    (run / "b.raw.json.gz").write_bytes(gzip.compress(TIMELINE))
    (run / "evil.pkl").write_bytes(pickle.dumps(Evil()))
    (run / "rank0" / "c.raw.json").write_bytes(TIMELINE)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "d.pickle").write_bytes(pickle.dumps(snapshot()))
    return tmp_path


@pytest.fixture
def session(folder: Path) -> Iterator[Session]:
    with Session([Root(str(folder))], Settings(cache_bytes=0)) as opened:
        opened.scan()
        yield opened


def ask(session: Session, part: str, **params: str) -> dict[str, Any]:
    answer = session.view(f"memory/{part}", "run", params=params)
    assert answer.payload is not None and answer.run == "run"
    payload: dict[str, Any] = json.loads(answer.payload)
    return payload


def test_memory_files_belong_to_the_run_of_their_folder(session: Session) -> None:
    elsewhere, run = session.catalog.runs
    assert [(file.name, file.kind) for file in run.memory_files] == [
        ("a.pickle", "snapshot"),
        ("b.raw.json.gz", "timeline"),
        ("evil.pkl", "snapshot"),
        ("rank0/c.raw.json", "timeline"),
    ]
    assert [worker.name for worker in run.workers] == ["w"]
    assert elsewhere.name == "elsewhere" and [file.name for file in elsewhere.memory_files] == ["d.pickle"]


def test_a_trace_is_a_trace_whatever_it_is_called(folder: Path) -> None:
    (folder / "run" / "x.raw.json").write_bytes(TRACE)
    with Session([Root(str(folder))], Settings()) as opened:
        _, run = opened.scan().runs
    assert "x.raw" in {worker.name for worker in run.workers}
    assert all(file.name != "x.raw.json" for file in run.memory_files)


def test_memory_files_are_opened_by_number(session: Session) -> None:
    assert ask(session, "snapshot")["devices"][0]["allocated_bytes"] == 1536
    assert ask(session, "snapshot", file="0", device="1")["device"] == 1
    for number in ("1", "3"):
        assert ask(session, "timeline", file=number)["peak_bytes"] == 500
    for number in ("-1", "4", "99999999999999999999"):
        with pytest.raises(NotFoundError, match="no memory file"):
            ask(session, "snapshot", file=number)
    for path in ("../../etc/passwd", "a.pickle", ""):
        with pytest.raises(UsageError):
            ask(session, "snapshot", file=path)


def test_an_unreadable_file_is_refused_with_its_name(session: Session, capsys: Any) -> None:
    with pytest.raises(TraceError, match="refused") as caught:
        ask(session, "snapshot", file="2")
    assert caught.value.where == "evil.pkl" and "called" not in capsys.readouterr().out
    with pytest.raises(TraceError, match="not a memory timeline"):
        ask(session, "timeline", file="0")
    with pytest.raises(TraceError, match="not a memory snapshot but a timeline"):
        ask(session, "snapshot", file="1")
    assert ask(session, "snapshot")["device"] == 0  # a failure leaves nothing behind


def test_a_file_is_read_once_until_it_changes(
    session: Session, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    read = read_trace

    def counting(stream: Any, **options: Any) -> Any:
        opened.append(options["name"])
        return read(stream, **options)

    monkeypatch.setattr(jobs, "read_trace", counting)
    for points in ("5", "6", "7"):
        ask(session, "snapshot", points=points)
    assert opened == ["run/a.pickle"]
    changed = snapshot()
    changed["segments"][0]["blocks"][0]["size"] = 1000
    (folder / "run" / "a.pickle").write_bytes(pickle.dumps(changed))
    session.scan()
    assert ask(session, "snapshot")["devices"][0]["allocated_bytes"] == 1512


def test_memory_files_alone_make_the_tab_available(session: Session) -> None:
    answer = session.view("memory", "run", wait=True, timeout=PATIENCE)
    assert answer.payload is not None
    payload = json.loads(answer.payload)
    assert payload["devices"] == [] and payload["default_device"] is None
    assert "profile_memory" in payload["reasons"]["devices"][0]["text"]
    lacks = session.unavailable(session.find("run", None, None))
    assert lacks is not None and "memory" not in lacks and "modules" in lacks


def test_without_files_a_trace_without_memory_has_no_tab(tmp_path: Path) -> None:
    (tmp_path / "w.1.pt.trace.json").write_bytes(TRACE)
    with Session([Root(str(tmp_path))], Settings(cache_bytes=0)) as opened:
        opened.scan()
        with pytest.raises(NotFoundError, match="profile_memory"):
            opened.view("memory", wait=True, timeout=PATIENCE)


def test_memory_files_over_http(session: Session, folder: Path) -> None:
    (folder / "run" / "w.1.pt.trace.json").write_bytes(document(memory("1 GPU0 a 5 5 9\n2 GPU0 a -5 0 9")))
    session.scan()
    client = Client(App(session))
    listed = client.get("/workers?run=run").json
    assert listed is not None
    files = listed["memory_files"]
    assert [(file["file"], file["name"], file["kind"]) for file in files][:2] == [
        (0, "a.pickle", "snapshot"),
        (1, "b.raw.json.gz", "timeline"),
    ]
    assert files[0]["bytes"] == (folder / "run" / "a.pickle").stat().st_size
    answer = client.get("/view/memory/snapshot?run=run&file=0")
    assert answer.status_code == 200 and answer.json is not None
    assert answer.json["payload"]["total_segments"] == 2
    refused = client.get("/view/memory/snapshot?run=run&file=2")
    assert refused.status_code == 422 and refused.json is not None
    error = refused.json["error"]
    assert error["code"] == "trace" and error["message"].startswith("refused: the pickle ")  # by either reader
    assert error["where"] == "evil.pkl" and str(folder) not in refused.text


def test_a_large_snapshot_is_shown_while_its_history_is_read(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    if open_library() is None:
        pytest.skip("the native reader is not built")
    monkeypatch.setenv("TORCH_PROFILER_NATIVE", "1")
    monkeypatch.setattr(reader, "PIECE_BYTES", 1 << 14)
    value = snapshot()
    value["device_traces"][0] += [entry("alloc", 8, i, [], addr=8 * i) for i in range(5000)]
    (folder / "run" / "a.pickle").write_bytes(pickle.dumps(value))
    settings = Settings(cache_dir=str(tmp_path_factory.mktemp("cache")), small_file_bytes=0, executor="serial")
    received: list[Any] = []
    with receive_preview(received.append), open(folder / "run" / "a.pickle", "rb") as stream:
        read_trace(stream, name="a.pickle")
    with monkeypatch.context() as patched, Session([Root(str(folder))], settings) as opened:
        patched.setattr(Loader, "load", lambda *_, **__: Future())
        patched.setattr(Loader, "is_large", lambda *_: True)
        listed = opened.scan().runs[1].memory_files[0].file
        client = Client(App(opened))
        assert client.get("/view/memory/snapshot?run=run&file=0").status_code == 202
        assert Cache.from_settings(settings).save_trace(preview_key(entry_key(listed.id)), *received)
        answer = client.get("/view/memory/snapshot?run=run&file=0")
        assert answer.status_code == 200 and answer.json is not None and answer.json["loading"] == 1
        first = answer.json["payload"]
        assert not first["read"]["complete"] and "still being read" in first["reasons"]["entry"][0]["text"]
        assert first["devices"][0]["reserved_bytes"] == 4096 and first["read"]["entries"] == 0
        assert first["stacks"] and first["peak"] is None
        alone = opened.catalog.runs[0].memory_files[0].file
        assert client.get("/view/memory?run=elsewhere").status_code == 202
        assert Cache.from_settings(settings).save_trace(preview_key(entry_key(alone.id)), *received)
        patched.setattr(RequestedFiles, "open", lambda *_: (FileState("loading"), None))
        opened_tab = client.get("/view/memory?run=elsewhere")  # or the page would wait for the whole file
        assert opened_tab.status_code == 200 and opened_tab.json is not None and opened_tab.json["loading"] == 1
        Cache.from_settings(settings).remove_trace(preview_key(entry_key(alone.id)))
    with Session([Root(str(folder))], settings) as opened:
        opened.scan()
        payload = ask(opened, "snapshot", file="0")
        assert payload["read"]["entries"] == 5009 and payload["devices"][0]["reserved_bytes"] == 4096
    assert not [*Path(settings.cache_dir).rglob("*.preview*")]


def test_two_runs_are_compared_by_the_name_of_the_other(folder: Path) -> None:
    (folder / "after").mkdir()
    value = snapshot()
    value["segments"][0]["blocks"][0]["requested_size"] = 1007
    (folder / "after" / "d.pickle").write_bytes(pickle.dumps(value))
    with Session([Root(str(folder))], Settings(cache_bytes=0)) as opened:
        opened.scan()
        names = {"other": {"other": "elsewhere"}, "base_run": {"base_run": "elsewhere"}}
        answers = [
            opened.view("memory/compare", "after", params=params, wait=True, timeout=PATIENCE)
            for params in names.values()
        ]
        with pytest.raises(NotFoundError):
            opened.view("memory/compare", "after", params={"other": "nowhere"}, wait=True, timeout=PATIENCE)
    first, second = (json.loads(answer.payload or b"") for answer in answers)
    assert first == second and answers[0].base is not None and answers[0].base.run == "elsewhere"
    assert first["peak_difference_bytes"] == 7 == sum(site["bytes"] for site in first["sites"])


def test_the_second_opening_of_a_snapshot_reads_no_column(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(cache_dir=str(tmp_path / "cache"), executor="serial", small_file_bytes=1)

    def view(**params: str) -> dict[str, Any]:
        with Session([Root(str(folder))], settings) as opened:
            opened.scan()
            answer = opened.view("memory/snapshot", "elsewhere", params=params, wait=True, timeout=PATIENCE)
            assert answer.payload is not None
            payload: dict[str, Any] = json.loads(answer.payload)
            return payload

    first, fewer = view(), view(points="1")
    loaded: list[str] = []
    load_trace = Cache.load_trace

    def record_load(self: Cache, key: str) -> Any:
        loaded.append(key)
        return load_trace(self, key)

    monkeypatch.setattr(Cache, "load_trace", record_load)
    assert view() == view(file="0") == first and loaded == []
    assert view(points="1") == fewer != first and len(loaded) == 1
    (folder / "elsewhere" / "d.pickle").write_bytes(
        pickle.dumps({"segments": [], "device_traces": [[entry("alloc", 9, 1, [], addr=4096)]]})
    )
    assert view() != first, "another file at the same path has an answer of its own"
