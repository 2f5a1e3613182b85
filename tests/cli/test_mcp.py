"""Where slices are written that an agent asks for."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from torch_tb_profiler.cli.mcp import OutputFolder


@pytest.mark.parametrize(
    "name", ["../../evil.json", "/etc/passwd", "..", "", ".hidden.json", "a\0b\n.json", "ü" * 999]
)
def test_no_name_leads_out_of_the_folder(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    paths = [Path(OutputFolder(str(folder)).save(name, [b"1", b"2"])) for _ in range(3)]
    assert len({*paths}) == 3
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == sorted(paths)
    assert {path.parent for path in paths} == {folder}
    assert {gzip.decompress(path.read_bytes()) for path in paths} == {b"12"}


def test_a_file_that_cannot_be_finished_is_not_left(tmp_path: Path) -> None:
    def broken() -> Iterator[bytes]:
        yield b"1"
        raise RuntimeError

    with pytest.raises(RuntimeError):
        OutputFolder(str(tmp_path)).save("x.json", broken())
    assert [*tmp_path.iterdir()] == []
