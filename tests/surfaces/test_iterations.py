"""No surface calls an iteration of an inference engine a step."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from tests.support.serving import Workload, serving_document
from tests.support.serving_ranks import rank_document
from torch_tb_profiler.base.errors import NotFoundError, ProfilerError
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.cli import main
from torch_tb_profiler.mcp.tools import Tools
from torch_tb_profiler.session import open_session
from torch_tb_profiler.views import all_tabs

STEP = re.compile(r"\bsteps?\b(?!\[)", re.IGNORECASE)
"""SGLang's labels are `step[...]`, which are names."""

SHORT = Workload(requests=12, faults=dict.fromkeys(range(5, 200, 5), ("scheduler", 6000)))
SHOWN = ("overview", "trace", "idle", "critical_path", "serving", "kernels")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("log")
    documents = {
        "vllm/rank0": serving_document(SHORT),
        "sglang/rank0": serving_document(replace(SHORT, form="sglang")),
        "ranks/rank0": rank_document(SHORT),
        "ranks/rank1": rank_document(SHORT, slower=1.4),
    }
    for name, document in documents.items():
        path = folder / f"{name}.1.pt.trace.json"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(document)
    return folder


def texts(value: Any, field: str = "") -> Iterator[str]:
    """Yield what is read in an answer: sentences as a whole, and all other texts but names of fields."""
    if isinstance(value, dict):
        for name, each in value.items():
            if name not in ("kind", "step_noun", "link"):
                yield from texts(each, name)
    elif isinstance(value, list) and value and all(isinstance(each, dict) and "link" in each for each in value):
        yield "".join(str(each.get("text", "")) for each in value)
    elif isinstance(value, list):
        for each in value:
            yield from texts(each, field)
    elif isinstance(value, str) and not value.startswith("/"):  # a path in the answer
        yield value


def command(*arguments: str) -> str:
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        main([*arguments])
    return out.getvalue() + err.getvalue()


@pytest.mark.parametrize("run", ["vllm", "sglang", "ranks"])
def test_answers_speak_of_iterations(log: Path, run: str) -> None:
    phrases: dict[str, list[str]] = {}
    with open_session(str(log), Settings(cache_dir=str(log.parent / "cache")), own_process=True) as session:
        for tab in all_tabs():
            for view in tab.views:
                other = {"base_run": "vllm" if run == "sglang" else "sglang"} if tab.section == "Compare" else {}
                try:
                    answer = session.view(view.slug, run, params=other, wait=True)
                except ProfilerError:
                    continue  # needs a parameter, or this trace has nothing for it
                if answer.payload is not None:
                    phrases[view.slug] = list(texts(json.loads(answer.payload)))
        tools = Tools(session)  # closes the session when it is collected
        event = session.view("trace/event", run, params={"event": "40"}, wait=True)
        assert event.payload is not None
        phrases["trace/event"] = list(texts(json.loads(event.payload)))
        phrases["agent"] = list(texts(json.loads(tools.view("overview", run))))
        with pytest.raises(NotFoundError, match="iteration 'none'") as error:
            session.view("idle", run, params={"step": "none"}, wait=True)
        phrases["error"] = [error.value.message, error.value.hint or ""]
    assert {*SHOWN, "trace/event", "diff"} <= phrases.keys()
    found = [(view, text) for view, joined in phrases.items() for text in joined if STEP.search(text)]
    assert not found, found
    joined = "\n".join(text for each in phrases.values() for text in each)
    assert "average iteration" in joined and ("Iterations" in phrases["trace"])


@pytest.mark.parametrize("run", ["vllm", "ranks"])
def test_the_terminal_and_the_summary_speak_of_iterations(log: Path, run: str) -> None:
    views = (*SHOWN, *(["distributed"] if run == "ranks" else []))
    shown = {view: command("view", view, str(log), "--run", run, "--format", "table") for view in views}
    shown["diff"] = command("diff", str(log / run), str(log / "sglang"))
    shown["markdown"] = command("diff", str(log / run), str(log / "sglang"), "--format", "markdown")
    shown["summary"] = command("summary", str(log), "--run", run)
    assert all(len(text) > 80 for text in shown.values())
    found = [(view, line) for view, text in shown.items() for line in text.splitlines() if STEP.search(line)]
    assert not found, found
    assert "## An iteration takes " in shown["summary"]


def test_what_an_engine_annotates_is_not_called_operators(log: Path, tmp_path: Path) -> None:
    settings = Settings(cache_dir=str(tmp_path))
    with open_session(str(log), settings, own_process=True) as session:
        payload = session.view("overview", "vllm", wait=True).payload
    assert payload is not None
    phrases = [each for each in texts(json.loads(payload)) if "on the host" in each or "the host runs" in each]
    assert any("while the host runs annotated code" in each for each in phrases)
    assert not any("operators on the host" in each or "runs operators" in each for each in phrases)
    out = StringIO()
    with redirect_stdout(out):
        assert main(["summary", str(log), "--run", "vllm"]) == 0
    assert "annotated code blocks on the host" in out.getvalue()
    assert "operators on the host" not in out.getvalue()
