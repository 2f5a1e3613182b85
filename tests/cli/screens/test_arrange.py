"""`--columns`, `--sort` and `--limit`, for tables and for CSV."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.traces import document
from torch_tb_profiler.cli import main


@pytest.fixture
def folder(tmp_path: Path) -> str:
    events = [
        {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": 100 * i, "dur": duration}
        for i, (name, duration) in enumerate((("aten::mm", 5), ("aten::add", 9), ("b", 7), ("aten::mm", 1)))
    ]
    (tmp_path / "w.pt.trace.json").write_bytes(document(events))
    return str(tmp_path)


def table(folder: str, capsys: pytest.CaptureFixture[str], *options: str, form: str = "table") -> list[list[str]]:
    assert main(["view", "operators", folder, "--format", form, *options]) == 0
    lines = capsys.readouterr().out.splitlines()
    if form == "tsv":
        return [line.split("\t") for line in lines]
    return [line.split() for line in lines[lines.index("") + 1 :]]


def test_columns_sort_and_limit(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    columns = ("--columns", "Calls,name")
    assert table(folder, capsys, *columns, "--sort", "name") == [
        ["Calls", "Operator"],
        ["1", "aten::add"],
        ["2", "aten::mm"],
        ["1", "b"],
    ]
    assert [row[1] for row in table(folder, capsys, *columns, "--sort", "calls")][:2] == ["Operator", "aten::mm"]
    assert [row[1] for row in table(folder, capsys, *columns, "--sort", "host_self:asc")][1:] == [
        "aten::mm",
        "b",
        "aten::add",
    ]
    descending = table(folder, capsys, *columns, "--sort=-name")
    assert [row[1] for row in descending][1:] == ["b", "aten::mm", "aten::add"]
    limited = table(folder, capsys, *columns, "--sort", "Host total:desc", "--limit", "1")
    assert limited[1:] == [["1", "aten::add"], "1 of 3 operators; --limit 0 shows all.".split()]


def test_separated_values_are_exact_and_take_the_same_options(
    folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--columns", "name,host_self_ns", "--sort", "Host self", "--limit", "2")
    rows = [["name", "host_self_ns"], ["aten::add", "9000"], ["b", "7000"]]
    assert table(folder, capsys, *options, form="tsv") == rows
    assert main(["view", "operators", folder, "--format", "csv", *options]) == 0
    assert [line.split(",") for line in capsys.readouterr().out.splitlines()] == rows


def test_a_wrong_column_is_an_error_that_lists_the_columns(
    folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for option in ("--columns=Calls,Speed", "--sort=Speed"):
        assert main(["view", "operators", folder, "--format", "table", option]) == 2
        out, err = capsys.readouterr()
        assert not out and "no column is called 'Speed'" in err and "Operator, Calls" in err
    assert main(["view", "operators", folder, "--sort", "name"]) == 2
    assert "--format table" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["view", "operators", folder, "--limit", "-1"])
