"""One suite for every storage: the same files, the same numbers, the same named failures."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.servers import storage as servers
from tests.support.servers.storage import SECRET, CuttingProxy, Place
from tests.support.servers.tensorboard import read_json, tensorboard
from tests.support.traces import document
from tests.support.waiting import PATIENCE, until
from torch_tb_profiler.base.errors import StorageError
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.session import Root, Session
from torch_tb_profiler.storage import open_location
from torch_tb_profiler.storage.remote import BLOCK_BYTES

TRACE = document(
    [
        {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 10 * i, "dur": 5}
        for i in range(40)
    ]
)
# What the Google client of this test says of its own upload.
pytestmark = pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")

STORAGES = ("local", "memory", "s3", "azure", "google", "hadoop")


@pytest.fixture(scope="module", params=STORAGES)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp(request.param)
    with ExitStack() as stack:
        open_server = getattr(servers, request.param)
        takes_folder = request.param in ("local", "azure")
        yield stack.enter_context(open_server(folder) if takes_folder else open_server())


@pytest.fixture
def place(server: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """Yield the storage, empty before and after."""
    for name, value in server.environ.items():
        monkeypatch.setenv(name, value)
    yield server
    for entry in open_location(server.url).scan().entries:
        server.remove(entry.path)


def test_lists_every_file_with_its_size_at_any_depth(place: Place) -> None:
    files = {"a/w.pt.trace.json": TRACE, "b/c/d/w.pt.trace.json": TRACE[:100], "x y+%41#ü/e.json": b"{}"}
    for path, content in files.items():
        place.put(path, content)
    found = open_location(place.url).scan()
    assert {entry.path: entry.size for entry in found.entries} == {
        path: len(content) for path, content in files.items()
    }
    assert found.problems == []


def test_reads_back_what_was_written(place: Place) -> None:
    # The emulator of Google's storage loses a carriage return at the end of what it is given.
    content = os.urandom(2 * BLOCK_BYTES + 12345) + b"."
    place.put("big.bin", content)
    with open_location(place.url).open("big.bin") as stream:
        first = stream.read(5)
        assert first + b"".join(iter(lambda: stream.read(1 << 20), b"")) == content
    place.put("empty.bin", b"")
    with open_location(place.url).open("empty.bin") as stream:
        assert stream.read(10) == b""


def test_a_single_file_is_a_place_too(place: Place) -> None:
    place.put("run/w.pt.trace.json", TRACE)
    location = open_location(f"{place.url}/run/w.pt.trace.json")
    (entry,) = location.scan().entries
    assert entry.path == "w.pt.trace.json"
    with location.open(entry.path) as stream:
        assert stream.read(1 << 20) == TRACE


def test_a_new_content_is_a_new_identity(place: Place) -> None:
    place.put("w.json", TRACE)
    location = open_location(place.url)
    (before,) = location.scan().entries
    assert location.entry("w.json").identity == before.identity
    place.put("w.json", TRACE.replace(b"add", b"mul"))
    (after,) = location.scan().entries
    assert after.size == before.size
    assert after.identity != before.identity


def test_what_is_not_there_is_named(place: Place) -> None:
    place.put("w.json", TRACE)
    with pytest.raises(StorageError, match="no such"):
        open_location(f"{place.url}/nowhere").scan()
    with pytest.raises(StorageError, match="cannot be"):
        open_location(place.url).open("gone.json").read(1)
    with pytest.raises(StorageError, match="cannot be"):
        open_location(place.url).entry("gone.json")


def test_the_numbers_do_not_depend_on_the_storage(
    place: Place, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "w.1.pt.trace.json").write_bytes(TRACE)
    place.put("run/w.1.pt.trace.json", TRACE)
    payloads = []
    with caplog.at_level(logging.DEBUG, "torch_tb_profiler"):
        for root in (str(tmp_path), place.url):
            with Session([Root(root)], Settings.from_environment()) as session:
                session.scan()
                assert session.error is None
                answer = session.view("overview", wait=True, timeout=PATIENCE)
                assert answer.payload is not None, answer.state
                payloads.append(json.loads(answer.payload))
                assert SECRET not in session.root
    assert payloads[0] == payloads[1]
    assert SECRET not in caplog.text


def test_a_replaced_file_is_read_anew(place: Place) -> None:
    place.put("run/w.1.pt.trace.json", TRACE)
    with Session([Root(place.url)], Settings.from_environment()) as session:
        session.scan()
        first = session.view("overview", wait=True, timeout=PATIENCE)
        place.put("run/w.1.pt.trace.json", TRACE.replace(b'"ts": 390', b'"ts": 990'))
        session.scan()
        second = session.view("overview", wait=True, timeout=PATIENCE)
    durations = [json.loads(a.payload or b"")["steps"][0]["duration_ns"] for a in (first, second)]
    assert durations == [395_000, 995_000]


def test_a_connection_that_breaks_is_taken_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    content = os.urandom(3 * BLOCK_BYTES)
    with servers.s3("cut") as place:
        place.put("big.bin", content)
        target = urlsplit(place.environ["S3_ENDPOINT"]).port
        assert target is not None
        proxy = CuttingProxy(target, cuts=3, after=BLOCK_BYTES // 2)
        for name, value in place.environ.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("S3_ENDPOINT", f"http://127.0.0.1:{proxy.port}")
        with open_location(place.url).open("big.bin") as stream:
            assert b"".join(iter(lambda: stream.read(1 << 20), b"")) == content
        assert proxy.made == 3
        proxy.close()


def test_a_storage_that_cannot_be_reached_is_a_reason_and_no_hang(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("s3fs")
    for name, value in {
        "AWS_ACCESS_KEY_ID": "tester",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "S3_ENDPOINT": f"http://127.0.0.1:{servers.free_port()}",
    }.items():
        monkeypatch.setenv(name, value)
    with Session([Root("s3://traces/run")], Settings.from_environment()) as session:
        session.scan()
        assert session.error is not None
        assert session.error.code == "storage"
        assert "cannot be listed" in session.error.message
        assert SECRET not in repr(session.error)


@pytest.mark.slow
def test_tensorboard_serves_a_bucket(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with servers.s3("served") as place:
        place.put("run/w.1.pt.trace.json", TRACE)
        for name, value in place.environ.items():
            monkeypatch.setenv(name, value)
        with tensorboard("--logdir", place.url, cache=tmp_path) as address:
            plugin = f"{address}/data/plugin/pytorch_profiler"
            assert until(lambda: read_json(f"{plugin}/runs"), lambda answer: answer["runs"])["root"] == place.url
            overview = f"{plugin}/view/overview"
            answer = until(lambda: read_json(overview), lambda answer: answer["state"] == "ready")
            assert answer["payload"]["steps"][0]["duration_ns"] == 395_000
