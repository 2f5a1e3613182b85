"""The command over real standard input and output, asked by the client of the SDK."""

from __future__ import annotations

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio
import pytest

import torch_tb_profiler as ttp
from tests.support.waiting import PATIENCE
from torch_tb_profiler.api.tables import without_links
from torch_tb_profiler.cli import main
from torch_tb_profiler.mcp.bounds import MAX_BYTES
from torch_tb_profiler.summary import as_markdown

ROOT = Path(__file__).resolve().parents[2]

Ask = tuple[str, dict[str, Any]]


def ask(
    arguments: list[str],
    *questions: Ask,
    program: tuple[str, ...] = (sys.executable, "-m", "torch_tb_profiler", "mcp"),
) -> tuple[list[str], list[tuple[bool, str]]]:
    """Return (the tools that are offered, whether it is an error and the text of each answer)."""
    # Here, because the SDK takes over a second to import, and each process of a run imports every test.
    from mcp import Client, StdioServerParameters, stdio_client

    # The SDK's own default is what `sys.stderr` was at its import: that of a test which captures it has no file.
    errors = sys.__stderr__
    assert errors is not None
    command, *before = program
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    async def talk() -> tuple[list[str], list[tuple[bool, str]]]:
        server = StdioServerParameters(command=command, args=[*before, *arguments], env=environment)
        answers = []
        with anyio.fail_after(PATIENCE):
            async with Client(stdio_client(server, errlog=errors)) as client:
                offered = [tool.name for tool in (await client.list_tools()).tools]
                for name, given in questions:
                    result = await client.call_tool(name, given)
                    (content,) = result.content
                    assert content.type == "text"
                    answers.append((bool(result.is_error), content.text))
        return offered, answers

    with ThreadPoolExecutor(1) as thread:  # a browser test may have left an event loop in this one
        return thread.submit(anyio.run, talk).result()


@pytest.mark.slow
def test_every_tool_answers_the_same_numbers(samples: Path) -> None:
    of_ddp: dict[str, Any] = {"view": "operators", "run": "ddp", "worker": "rank1"}
    grouped = {**of_ddp, "parameters": {"group_by": "module"}}
    offered, answers = ask(
        [str(samples)],
        ("list_runs", {}),
        ("list_views", {}),
        ("summary", {"run": "ddp"}),
        ("view", {**of_ddp, "field": "/totals"}),
        ("view", {**grouped, "field": "/rows/0"}),
        ("diff", {"run": "ddp", "worker": "rank1", "base_run": "ddp", "base_worker": "rank0", "field": "/step"}),
        ("view", of_ddp),
        ("view", {"view": "operators", "run": "nobody"}),
        ("view", {**of_ddp, "parameters": {"color": "red"}}),
        ("slice", {"run": "ddp"}),
    )
    assert offered == ["list_runs", "list_views", "summary", "view", "diff"]
    assert [failed for failed, _ in answers] == [False] * 7 + [True] * 3
    assert all(len(text.encode()) <= MAX_BYTES for _, text in answers)
    runs, views, summary, totals, row, step, bounded, no_run, no_parameter, _ = (text for _, text in answers)
    with ttp.open(str(samples)) as log:
        ddp = log["ddp"]
        assert [each["run"] for each in json.loads(runs)["answer"]["runs"]] == [*log.runs]
        assert summary == as_markdown(ddp.summary())
        operators = without_links(ddp.operators(worker="rank1").to_dict())
        assert json.loads(totals)["answer"] == operators["totals"]
        modules = without_links(ddp.operators(worker="rank1", group_by="module").to_dict())
        assert json.loads(row)["answer"] == modules["rows"][0]
        diff = ddp.diff(worker="rank1", base_run="ddp", base_worker="rank0").to_dict()
        assert json.loads(step)["answer"] == without_links(diff["step"])
    assert "operators/stacks" in views
    shown = json.loads(bounded)
    (left_out,) = (each for each in shown["left_out"] if each["field"] == "/rows")
    assert (left_out["shown"], left_out["of"]) == (len(shown["answer"]["rows"]), len(operators["rows"]))
    assert shown["answer"]["rows"] == operators["rows"][: left_out["shown"]]
    assert "there is no run 'nobody'" in no_run and "hint: runs: " in no_run
    assert "unknown parameter 'color'" in no_parameter and "group_by" in no_parameter


@pytest.mark.slow
def test_a_slice_is_a_trace_in_the_folder_that_the_user_gave(samples: Path, tmp_path: Path) -> None:
    folder = tmp_path / "slices"
    folder.mkdir()
    one_step = ("slice", {"step": 2})
    offered, answers = ask(
        [str(samples / "ddp"), "--output-folder", str(folder)],
        one_step,
        one_step,
        ("slice", {"begin": "soon"}),
        ("slice", {"output": "/tmp/x", "step": 2}),
    )
    assert offered[-1] == "slice"
    assert [failed for failed, _ in answers[:3]] == [False, False, True], answers
    files = [Path(json.loads(text)["answer"]["file"]) for _, text in answers[:2]]
    assert files[0] != files[1] and {file.parent for file in files} == {folder}
    with ttp.open(str(files[0])) as log:
        assert log.run().operators().to_dict()["rows"]
    # A name that a request makes up leads nowhere.
    assert {file.parent for file in tmp_path.rglob("*.json*")} == {folder}


def test_without_the_sdk_the_command_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    for module in ("torch_tb_profiler.mcp.server", "mcp.server.mcpserver", "mcp.server"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    assert main(["mcp", str(tmp_path)]) == 1
    assert 'pip install "torch-tb-profiler[mcp]"' in capsys.readouterr().err


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mcp", str(tmp_path), "--output-folder", str(tmp_path / "none")]) == 2
    assert "there is no such folder" in capsys.readouterr().err
