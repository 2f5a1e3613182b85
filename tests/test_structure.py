"""A file does one thing and a folder holds what can be seen at once: limits that the source keeps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDERS = ("torch_tb_profiler", "native", "fe/src", "fe/scripts", "tests", "benchmarks", "examples", "scripts")
CODE = (".py", ".c", ".h", ".ts", ".tsx", ".mjs", ".css")
GENERATED = {ROOT / "fe/src/api/types.gen.ts"}
MOST_LINES = 350
MOST_FILES = 15


def sources() -> Iterator[Path]:
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in CODE and path not in GENERATED and not {"static", "node_modules"} & set(path.parts):
                yield path


def test_no_file_is_longer_than_a_reader_can_hold() -> None:
    lines = {str(path.relative_to(ROOT)): path.read_text("utf-8").count("\n") for path in sources()}
    assert len(lines) > 300
    assert {path: count for path, count in lines.items() if count > MOST_LINES} == {}


def test_no_folder_holds_more_code_than_can_be_seen_at_once() -> None:
    # A stylesheet belongs to the component beside it.
    files = Counter(str(path.parent.relative_to(ROOT)) for path in sources() if path.suffix != ".css")
    assert {folder: count for folder, count in files.items() if count > MOST_FILES} == {}
