"""The documentation is true: links lead somewhere, commands are commands, the tours print what they say."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.waiting import PATIENCE
from torch_tb_profiler.cli import main
from torch_tb_profiler.cli.main import _build_parser
from torch_tb_profiler.views import SLUGS, all_views
from torch_tb_profiler.views.distributed.payload.job import VerdictPayload

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
TOURS = sorted((DOCS / "tours").glob("*.md"))
TEXTS = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *ROOT.glob("*/README.md")])


def code_blocks(text: str, *languages: str) -> list[str]:
    """Return the code blocks of some languages, those inside lists too."""
    blocks = re.findall(r"^( *)```(\w+)\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL)
    return [
        re.sub(f"^{indent}", "", body, flags=re.MULTILINE) for indent, name, body in blocks if name in languages
    ]


def anchors(text: str) -> set[str]:
    """Return what the headings of a page are called in its address."""
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        file, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", file):
            continue
        target = (path.parent / file).resolve() if file else path
        assert target.exists(), link
        assert not anchor or anchor in anchors(target.read_text(encoding="utf-8")), link


def commands() -> Iterator[tuple[str, str]]:
    """Yield the command lines of this program that are in the documentation: (where, line)."""
    for path in TEXTS:
        if path.name == "CONTRIBUTING.md":  # `test_recipes.py` runs what it says
            continue
        text = path.read_text(encoding="utf-8")
        blocks = [*code_blocks(text, "sh", "console", "bash"), *re.findall(r"(?:^    .*\n)+", text, re.MULTILINE)]
        for line in re.sub(r"\\\n *", "", "\n".join(blocks)).splitlines():
            line = line.strip().removeprefix("$ ").partition(" | ")[0].partition(" > ")[0]
            # What stands in brackets or capitals describes arguments.
            if line.startswith("torch-tb-profiler ") and not re.search(r"\[--|\[[A-Z]|\bPATH\b|\.\.\.", line):
                yield str(path.relative_to(ROOT)), line


def test_commands_are_understood() -> None:
    found = list(commands())
    assert len(found) > 20
    parser = _build_parser()
    for where, line in found:
        arguments = shlex.split(line, comments=True)[1:]
        if "--version" in arguments or "--" in arguments:
            continue
        try:
            options = parser.parse_args(arguments)
        except SystemExit:
            pytest.fail(f"{where}: {line}")
        if getattr(options, "slug", None):
            assert options.slug in {view.slug for view in all_views()}, f"{where}: {line}"


def test_examples_of_python_and_json_can_be_read() -> None:
    for path in TEXTS:
        text = path.read_text(encoding="utf-8")
        for block in code_blocks(text, "python"):
            ast.parse(block, filename=str(path))
        if path.name != "CONTRIBUTING.md":  # shows a part of a body
            for block in code_blocks(text, "json"):
                json.loads(block)


def test_all_views_have_a_page() -> None:
    assert {path.stem for path in (DOCS / "views").glob("*.md")} == set(SLUGS)


def test_all_pictures_are_taken_by_the_script_and_shown() -> None:
    script = (ROOT / "scripts" / "pictures.py").read_text(encoding="utf-8")
    pictures = set(re.findall(r'^ +Picture\(\s*"([\w-]+)"', script, re.MULTILINE))
    texts = (path.read_text(encoding="utf-8") for path in TEXTS)
    shown = {name for text in texts for name in re.findall(r"\]\([\w./]*images/([\w-]+)\.png\)", text)}
    assert pictures == {path.stem for path in (DOCS / "images").glob("*.png")} == shown


@pytest.mark.slow
def test_calls_in_place_of_those_of_hta_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for run in ("after", "before"):
        (tmp_path / "log" / run).mkdir(parents=True)
        for file in (ROOT / "samples" / "simulated_8_h100_late_rank").glob("rank[05].*"):
            (tmp_path / "log" / run / file.name).symlink_to(file)
    monkeypatch.chdir(tmp_path)
    text = (DOCS / "migrating.md").read_text(encoding="utf-8").partition("## From HTA")[2]
    (block,) = code_blocks(text, "python")
    names: dict[str, object] = {}
    exec(block, names)
    rows = [line.split("|")[1:3] for line in text.splitlines() if line.startswith("| `")]
    theirs = [call for row in rows for call in re.findall(r"`([\w.]+)\(\)`", row[0])]
    assert len(theirs) == len(set(theirs)) > 20
    for call in {row[1].strip() for row in rows}:
        answer = eval(call.strip("`"), names)
        assert isinstance(answer, pa.Table | VerdictPayload) or answer.to_arrow().num_rows, call


@pytest.mark.slow
@pytest.mark.parametrize("path", TOURS, ids=lambda path: str(path.stem))
def test_tours_print_what_they_say(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in ("samples", "examples"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    monkeypatch.chdir(tmp_path)
    tour = "\n".join(code_blocks(path.read_text("utf-8"), "console"))
    steps = re.split(r"^\$ ", tour, flags=re.MULTILINE)[1:]
    assert steps
    for step in steps:
        line, *expected = step.rstrip("\n").split("\n")
        program, *arguments = shlex.split(line)
        if program == "python":
            environment = {**os.environ, "PYTHONPATH": str(ROOT)}
            subprocess.run([sys.executable, *arguments], env=environment, check=True, capture_output=True)
        else:
            assert (program, main(arguments)) == ("torch-tb-profiler", 0), line
        printed = capsys.readouterr().out.rstrip("\n").split("\n")
        more = expected[-1:] == ["..."]
        wanted = expected[:-1] if more else expected
        assert (printed[: len(wanted)] if more else printed) == wanted, line


NAMES_OF_HTA = {
    "temporal breakdown": "idle",
    "idle time breakdown": "idle",
    "queue length": "idle",
    "launch statistics": "idle",
    "kernel sequences": "idle",
    "memory bandwidth": "idle",
    "critical path analysis": "critical_path",
    "kernel breakdown": "kernels",
}
"""Names of Holistic Trace Analysis, by which people look for what it does, and the page that they are led to."""


@pytest.mark.slow
def test_the_site_is_built_and_asks_nobody(tmp_path: Path) -> None:
    if shutil.which("mkdocs", path=str(Path(sys.executable).parent)) is None:
        pytest.skip("MkDocs is not installed (extra `docs`)")
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(tmp_path / "site")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    pages = {
        path.relative_to(tmp_path / "site").as_posix(): path.read_text("utf-8")
        for path in tmp_path.rglob("*.html")
    }
    assert {"index.html", "tours/one_gpu.html", "architecture.html"} | {
        f"views/{slug}.html" for slug in SLUGS
    } <= set(pages)
    assert 'id="torch_tb_profiler.open"' in pages["reference/python.html"]
    assert "/view/idle/gaps" in pages["reference/http.html"]
    for name, page in pages.items():
        assert not re.findall(r'<(?:script|img|iframe)[^>]* src="https?:|<link[^>]* href="https?:', page), name
    index = json.loads((tmp_path / "site" / "search" / "search_index.json").read_text("utf-8"))["docs"]
    for name, slug in NAMES_OF_HTA.items():
        found = [entry["location"] for entry in index if name in f"{entry['title']} {entry['text']}".lower()]
        assert any(location.startswith(f"views/{slug}.html") for location in found), (name, found)
