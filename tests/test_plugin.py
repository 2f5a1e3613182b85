"""The plugin inside a real TensorBoard."""

from __future__ import annotations

import argparse
import http.client
import json
import logging
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from tensorboard.plugins import base_plugin
from werkzeug.test import Client

from tests.support.servers.tensorboard import tensorboard
from tests.support.traces import document
from tests.support.waiting import PATIENCE, until
from torch_tb_profiler.plugin import PluginLoader, ProfilerPlugin

ROOT = Path(__file__).parents[1]
PREFIX = "data/plugin/pytorch_profiler"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    events = [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 0, "dur": 10}]
    (tmp_path / "log" / "run").mkdir(parents=True)
    (tmp_path / "log" / "run" / "w.pt.trace.json").write_bytes(document(events))
    return tmp_path / "log"


def ask(address: str, path: str) -> Any:
    with urllib.request.urlopen(f"{address}/{path}", timeout=PATIENCE) as response:
        return json.load(response)


@pytest.mark.parametrize("prefix", [(), ("--path_prefix", "/some/where")])
def test_in_a_real_tensorboard(folder: Path, tmp_path: Path, prefix: tuple[str, ...]) -> None:
    with tensorboard("--logdir", str(folder), *prefix, cache=tmp_path / "cache") as address:
        listing = ask(address, "data/plugins_listing")["pytorch_profiler"]
        assert listing["enabled"] is True
        assert listing["loading_mechanism"]["type"] == "IFRAME"
        assert listing["loading_mechanism"]["module_path"].endswith(f"{PREFIX}/index.js")
        until(lambda: ask(address, f"{PREFIX}/runs"), lambda body: not body["scanning"])
        answer = until(lambda: ask(address, f"{PREFIX}/view/overview"), lambda body: body["state"] == "ready")
        assert answer["payload"]["average"]["duration_ns"] == 10_000
        with urllib.request.urlopen(f"{address}/{PREFIX}/index.js", timeout=PATIENCE) as response:
            assert response.headers["Content-Type"].startswith("text/javascript")


def test_the_host_has_nothing_to_warn_about_in_what_a_browser_asks_for_again(folder: Path, tmp_path: Path) -> None:
    """`tensorboard` fails at its end if the process warned about a response."""
    with tensorboard("--logdir", str(folder), cache=tmp_path / "cache") as address:
        until(lambda: ask(address, f"{PREFIX}/runs"), lambda body: not body["scanning"])
        connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=PATIENCE)
        for path in ("runs", "index.js", "nothing"):
            headers: dict[str, str] = {}
            for _ in range(2):
                connection.request("GET", f"/{PREFIX}/{path}", headers=headers)
                response = connection.getresponse()
                response.read()
                assert len(response.headers.get_all("Date", [])) == 1
                assert response.headers["Content-Type"]
                headers = {"If-None-Match": response.headers.get("ETag", "")}
            assert response.status == (404 if path == "nothing" else 304)
        connection.close()


def test_several_named_log_folders(folder: Path, tmp_path: Path) -> None:
    with tensorboard("--logdir_spec", f"one:{folder},two:{folder}", cache=tmp_path / "cache") as address:
        runs = until(lambda: ask(address, f"{PREFIX}/runs"), lambda body: not body["scanning"])["runs"]
        assert [run["name"] for run in runs] == ["one/run", "two/run"]


def test_an_empty_log_folder_leaves_the_tab_out_and_everything_else_alive(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    with tensorboard("--logdir", str(tmp_path / "log"), cache=tmp_path / "cache") as address:
        assert until(lambda: ask(address, f"{PREFIX}/runs"), lambda body: not body["scanning"])["runs"] == []
        listing = ask(address, "data/plugins_listing")
        assert listing["pytorch_profiler"]["enabled"] is False
        assert "scalars" in listing


def flags(**values: object) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    PluginLoader().define_flags(parser)
    namespace = parser.parse_args([])
    vars(namespace).update({"logdir_spec": "", **values})
    return namespace


STARTED = "base", "cache", "discovery", "ingest", "model", "plugin", "session", "storage", "views"
"""Packages that listing a log folder takes. What answers a request is imported with the first one."""

START = """
import argparse, sys
from tensorboard.plugins import base_plugin
from torch_tb_profiler.plugin import PluginLoader
from tests.support.waiting import until
flags = argparse.Namespace(logdir_spec="")
plugin = PluginLoader().load(base_plugin.TBContext(logdir=sys.argv[1], flags=flags))
plugin.get_plugin_apps()
until(lambda: plugin._session.scanned)
views = "torch_tb_profiler.views.overview", "numpy"
print(*(name in sys.modules for name in views))
started = sorted(name for name in sys.modules if name.startswith(("torch_tb_profiler.", "pyarrow", "fsspec")))
for name in started:
    print("started", name)
assert plugin.is_active()
plugin._session.close()
print(*(name in sys.modules for name in views))
"""


def test_the_views_are_imported_once_a_browser_asks_for_the_tab_and_not_at_the_start(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", START, str(folder)], capture_output=True, text=True, timeout=PATIENCE, cwd=ROOT
    )
    lines = done.stdout.splitlines()
    assert [line for line in lines if not line.startswith("started")] == ["False False", "True True"], done.stderr
    started = {line.partition(" ")[2] for line in lines if line.startswith("started")}
    assert "torch_tb_profiler.discovery.arrange" in started, "the log folder has been listed"
    packages = {".".join(name.split(".")[:2]) for name in started}
    assert packages == {f"torch_tb_profiler.{name}" for name in STARTED}, (
        "each costs every user of TensorBoard time"
    )


def test_a_path_that_ends_with_a_slash_is_the_same_and_an_unknown_one_is_said(
    folder: Path, tmp_path: Path
) -> None:
    plugin = PluginLoader().load(base_plugin.TBContext(logdir=str(folder), flags=flags(logdir=str(folder))))
    client = Client(plugin.get_plugin_apps()["/*"])
    assert plugin._session is not None
    with plugin._session:
        for path in ("runs", "runs/"):
            assert client.get(f"/{PREFIX}/{path}").json is not None
        assert "there is no route '/nothing'" in client.get(f"/{PREFIX}/nothing").text


def test_the_flag_sets_the_level_of_log_messages(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    chosen = flags(logdir=str(tmp_path), pytorch_profiler_log_level="error")
    with caplog.at_level("INFO", "torch_tb_profiler"):  # puts the level back at the end
        PluginLoader().load(base_plugin.TBContext(logdir=str(tmp_path), flags=chosen)).get_plugin_apps()
        assert logging.getLogger("torch_tb_profiler").level == logging.ERROR


def test_the_constructor_does_nothing_and_activity_comes_from_memory(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    plugin = PluginLoader().load(base_plugin.TBContext(logdir=missing, flags=flags(logdir=missing)))
    assert isinstance(plugin, ProfilerPlugin)
    assert plugin.is_active() is False
    plugin.get_plugin_apps()
    session = plugin._session
    assert session is not None
    try:
        assert until(lambda: session.scanned)
        calls = 0

        def scan(*_: object) -> None:
            nonlocal calls
            calls += 1

        session.scan = scan  # type: ignore[assignment, method-assign]
        assert plugin.is_active() is True  # a folder that cannot be listed is something to say
        assert calls == 0
    finally:
        session.close()
