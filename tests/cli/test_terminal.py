"""On a terminal: tables fit it, views explain themselves, colors only where they are wanted, shells complete."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import PATIENCE
from torch_tb_profiler.cli import main
from torch_tb_profiler.cli._output import emphasize, format_table
from torch_tb_profiler.cli._session import ProgressLine
from torch_tb_profiler.session import FileState, ProgressInfo
from torch_tb_profiler.views import SLUGS, all_views

ROWS = [
    {"name": "aten::" + "x" * 60, "calls": 1234567, "module": "short", "total_ns": 1_234_000},
    {"name": "aten::mm", "calls": 1, "module": "y" * 40, "total_ns": None},
]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_names_lose_their_middle_and_numbers_nothing() -> None:
    lines = format_table(ROWS, 70).splitlines()
    assert max(map(len, lines)) <= 70
    assert (
        lines[2].startswith("aten::xxx") and "…" in lines[2] and "1,234,567" in lines[2] and "1.23 ms" in lines[2]
    )
    assert lines[3].startswith("aten::mm ") and "short" in lines[2]


def test_what_is_narrow_leaves_its_room_to_others() -> None:
    rows = [{**row, "module": "y" * 15, "never": None} for row in ROWS]
    dashes = format_table(rows, 80).splitlines()[1].split("  ")
    assert [len(part) for part in dashes] == [80 - 3 * 2 - 9 - 15 - 8, 9, 15, 8]
    assert "never" not in format_table(rows, 80) and "never" in format_table(rows)


def test_columns_that_do_not_fit_are_counted() -> None:
    lines = format_table(ROWS, 30).splitlines()
    assert max(map(len, lines[:-1])) <= 30 and "total_ns" not in lines[0]
    assert lines[-1] == "(2 columns do not fit; --wide shows them)"
    assert "x" * 60 in format_table(ROWS) and "total_ns" in format_table(ROWS)


def test_a_name_cannot_move_the_cursor() -> None:
    assert "\x1b" not in format_table([{"name": "a\x1b[2Jb\nc"}])
    assert len(format_table([{"name": "a\nb"}]).splitlines()) == 3


def test_colors_are_for_terminals_that_want_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert emphasize("a", Terminal(), "31") == "\x1b[31ma\x1b[0m"
    assert emphasize("a", io.StringIO()) == "a"
    monkeypatch.setenv("TERM", "dumb")
    assert emphasize("a", Terminal()) == "a"
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    assert emphasize("a", Terminal()) == "a"


def test_progress_is_a_bar_on_a_terminal_that_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    state = FileState("loading", ProgressInfo("reading", 3, 4, 1234))
    for stream, said in ((Terminal(), "[###############     ] 75% reading, 1,234 events"), (io.StringIO(), "")):
        monkeypatch.setattr(sys, "stderr", stream)
        with ProgressLine() as line:
            line.show(state)
            assert stream.getvalue() == ""  # what is short shows none
            monkeypatch.setattr(line, "_started", line._started - 2)
            line.show(state)
            assert said in stream.getvalue() and bool(said) == bool(stream.getvalue())
        assert not said or stream.getvalue().endswith("\r\x1b[K")


@pytest.mark.parametrize("arguments", [["view"], ["view", "--help"]])
def test_the_views_are_listed_with_their_parameters(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        assert main(arguments) == 0
    except SystemExit as ended:
        assert ended.code == 0
    lines = capsys.readouterr().out.splitlines()
    for view in all_views():
        assert any(line.split()[:1] == [view.slug] and len(line.split()) > 2 for line in lines), view.slug
    assert "      group_by=name|launch|family (default 'name')" in lines
    assert "      event (required)" in lines


def test_a_view_without_a_path_and_a_wrong_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", "overview"]) == 2
    assert "torch-tb-profiler view overview PATH" in capsys.readouterr().err
    assert main(["view", "overview", str(tmp_path / "nothing")]) == 1
    said = capsys.readouterr().err
    assert "no such folder" in said and "--logdir" not in said


@pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo terminals")
def test_a_table_fits_a_real_terminal_and_is_whole_when_piped(samples: Path) -> None:
    import fcntl
    import pty
    import struct
    import termios

    arguments = [sys.executable, "-m", "torch_tb_profiler", "view", "operators", str(samples / "transformer")]
    arguments += ["--format", "table"]
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 60, 0, 0))
    process = subprocess.Popen(arguments, stdout=follower, stderr=subprocess.DEVNULL)
    os.close(follower)
    shown = b""
    while True:
        try:
            piece = os.read(leader, 65536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        shown += piece
    os.close(leader)
    assert process.wait(PATIENCE) == 0
    table = [line for line in shown.decode().splitlines() if "aten::" in line]
    assert len(table) > 20 and max(map(len, table)) <= 60 and "columns do not fit" in shown.decode()
    piped = subprocess.run(arguments, capture_output=True, text=True, timeout=PATIENCE, check=True).stdout
    assert "columns do not fit" not in piped and "device_total_ns" in piped


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_the_commands_and_views(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for word in ("summary", "view", "--fail-over", "markdown", *SLUGS):
        assert word in script
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True, timeout=PATIENCE)


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        (["su"], ["summary"]),
        (["view", "crit"], ["critical_path"]),
        (["view", "overview", "--form"], ["--format"]),
        (["summary", "log", "--format", "ma"], ["markdown"]),
    ],
)
def test_bash_completes(typed: list[str], completed: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    words = " ".join(typed)
    ask = f"\nCOMP_WORDS=(torch-tb-profiler {words}); COMP_CWORD={len(typed)}\n"
    ask += "_torch_tb_profiler; echo ${COMPREPLY[@]}"
    done: Any = subprocess.run(
        ["bash", "-c", capsys.readouterr().out + ask], capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    assert done.stdout.split() == completed
