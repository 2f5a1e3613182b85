"""CONTRIBUTING.md is true: its event arrives as it says, its recipes work, the files it names exist."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from werkzeug.test import Client

from tests.support.waiting import PATIENCE
from torch_tb_profiler.http import App
from torch_tb_profiler.session import open_session

ROOT = Path(__file__).parents[1]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPES = ("analysis", "view", "importer", "storage")


class FencedBlock(NamedTuple):
    """A fenced block; `path` from its first line, "" if that names none."""

    language: str
    path: str
    text: str


def section(title: str) -> str:
    """Return what stands below a heading, up to the next one."""
    text = re.split(rf"^#+ {re.escape(title)}$", GUIDE, flags=re.MULTILINE)[1]
    return re.split(r"^##+ ", text, flags=re.MULTILINE)[0]


def blocks(title: str) -> list[FencedBlock]:
    fenced = re.findall(r"^```(\w+)\n(?:# ([\w./]+)\n)?(.*?)^```$", section(title), re.MULTILINE | re.DOTALL)
    return [FencedBlock(*block) for block in fenced]


def apply(block: FencedBlock, root: Path) -> None:
    """Write the file of a block, or add the lines of a diff where its other lines stand."""
    file = root / block.path
    if block.language != "diff":
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block.text, encoding="utf-8")
        if file.suffix == ".py" and not (file.parent / "__init__.py").exists():
            (file.parent / "__init__.py").touch()
        return
    lines = block.text.splitlines(keepends=True)
    before = "".join(line[1:] for line in lines if not line.startswith("+"))
    after = "".join(line[1:] for line in lines)
    text = file.read_text(encoding="utf-8")
    assert text.count(before) == 1, f"{block.path} has changed: CONTRIBUTING.md no longer says where to add a line"
    file.write_text(text.replace(before, after), encoding="utf-8")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield a copy of the package with all recipes applied, and a log folder with the event of the guide."""
    root = tmp_path_factory.mktemp("tree")
    ignored = shutil.ignore_patterns("static", "__pycache__")
    shutil.copytree(ROOT / "torch_tb_profiler", root / "torch_tb_profiler", ignore=ignored)
    shutil.copytree(ROOT / "tests" / "support", root / "tests" / "support", ignore=ignored)
    (root / "tests" / "__init__.py").touch()
    write_log(root)
    for recipe in RECIPES:
        for block in blocks(f"Add {'an' if recipe[0] in 'ai' else 'a'} {recipe}"):
            if block.path:
                apply(block, root)
    yield root


def write_log(root: Path) -> Path:
    file = root / "log" / "run" / "rank0.1.pt.trace.json"
    file.parent.mkdir(parents=True)
    file.write_text(blocks("How a trace flows")[0].text, encoding="utf-8")
    return root / "log"


def run(tree: Path, *arguments: str) -> str:
    """Return the output of a Python in the tree; what it imports is the tree's."""
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=tree, env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_event_of_the_guide_arrives_as_it_says(tmp_path: Path) -> None:
    expected: dict[str, Any] = json.loads(blocks("How a trace flows")[1].text)
    with open_session(str(write_log(tmp_path))) as session:
        assert session.view("operators", wait=True).payload is not None
        body = Client(App(session)).get("/view/operators?run=run&worker=rank0&span=1").json
    assert body is not None
    (row,) = body["payload"]["rows"]
    assert {name: row[name] for name in expected} == expected


def test_every_file_that_the_guide_names_is_there() -> None:
    names = re.findall(r"`([\w./-]+\.(?:py|ts|tsx|mjs|toml))`", GUIDE)
    assert len(names) > 25
    folder = Path()
    for name in names:
        if "gaps" in name:
            continue  # what the recipe adds
        places = (ROOT / name, ROOT / "torch_tb_profiler" / name, folder / name)
        file = next((place for place in places if place.is_file()), None)
        assert file is not None, name
        folder = file.parent  # a name without folders is beside the one before it


@pytest.mark.slow
def test_an_analysis_with_its_test(tree: Path) -> None:
    (test,) = [block.path for block in blocks("Add an analysis") if block.path.startswith("tests/")]
    assert "1 passed" in run(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", test)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["Add a view", "Add an importer"])
def test_what_a_recipe_prints(tree: Path, recipe: str) -> None:
    (session,) = [block.text for block in blocks(recipe) if block.language == "console"]
    command, output = session.split("\n", 1)
    program, *arguments = shlex.split(command.removeprefix("$ "))
    assert program == "torch-tb-profiler"
    assert run(tree, "-m", "torch_tb_profiler", *arguments) == output


REACH = """
import json, sys
from werkzeug.test import Client
import torch_tb_profiler
from tests.support.waiting import PATIENCE
from torch_tb_profiler.http import App
from torch_tb_profiler.http.openapi import build_document
from torch_tb_profiler.session import open_session

with torch_tb_profiler.open("log") as log:
    python = log["run"].gaps().to_dict()
with open_session("log") as session:
    session.view("gaps", run="run", wait=True)
    client = Client(App(session))
    answers = [client.get(f"/view/gaps?run=run{more}") for more in ("", "&min_ns=1", "&min_ns=-1")]
    tabs = [tab for tab in client.get("/views?run=run").json["views"] if tab["slug"] == "gaps"]
print(json.dumps({
    "python": python,
    "http": [[answer.status_code, answer.json.get("payload")] for answer in answers],
    "tab": tabs,
    "openapi": build_document()["paths"]["/view/gaps"]["get"]["parameters"],
}))
"""


@pytest.mark.slow
def test_a_view_is_reached_from_every_surface(tree: Path) -> None:
    reached = json.loads(run(tree, "-c", REACH))
    payload = {"threads": [{"thread": "7/7", "gap_ns": 0}]}
    assert reached["python"] == payload
    assert reached["http"] == [[200, payload], [200, {"threads": []}], [400, None]]
    (tab,) = reached["tab"]
    assert (tab["title"], tab["section"], tab["available"]) == ("Gaps", "Where the time goes", True)
    assert {"name": "min_ns", "in": "query", "schema": {"type": "integer", "minimum": 0}} in reached["openapi"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1], ids=["any scheme", "with options"])
def test_a_storage(tree: Path, number: int) -> None:
    checks = [block.text for block in blocks("Add a storage") if block.language == "python"]
    assert len(checks) == 2
    run(tree, "-W", "ignore::ResourceWarning", "-c", checks[number])
