"""On a terminal: tables fit it, views explain themselves, colors only where they are wanted, shells complete."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.support.terminal import Terminal
from tests.support.waiting import PATIENCE
from torch_tb_profiler.cli import main
from torch_tb_profiler.cli._session import ProgressLine
from torch_tb_profiler.cli._styles import emphasize
from torch_tb_profiler.session import FileState, ProgressInfo
from torch_tb_profiler.views import SLUGS, all_views


def test_errors_are_red_on_terminals_that_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert emphasize("a", Terminal(), "31") == "\x1b[31ma\x1b[0m"
    assert emphasize("a", io.StringIO()) == "a"
    monkeypatch.setenv("NO_COLOR", "1")
    assert emphasize("a", Terminal()) == "a"


@pytest.mark.parametrize("state", [None, FileState("loading", ProgressInfo("reading", 3, 4, 1234))])
def test_progress_appears_during_long_work_and_goes_away(
    state: FileState | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while an answer is computed, when nobody reports anything."""
    shown = Event()

    class Watched(Terminal):
        def write(self, text: str) -> int:
            if ("1,234 events" if state else "computing") in text:
                shown.set()
            return super().write(text)

    stream = Watched()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr("torch_tb_profiler.cli._session.BAR_DELAY_S", 0.01)
    with ProgressLine() as line:
        if state:
            line.show(state)
        assert shown.wait(PATIENCE)
    assert stream.getvalue().rstrip("\r\n").endswith("\x1b[2K")  # erased


def test_short_work_and_pipes_show_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream, delay in ((Terminal(), 1000), (io.StringIO(), 0)):
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setattr("torch_tb_profiler.cli._session.BAR_DELAY_S", delay)
        with ProgressLine() as line:
            line.show(FileState("loading", ProgressInfo("reading", 3, 4, 1234)))
        assert stream.getvalue() == ""


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
    assert "      step (optional)" in lines
    assert "      event (required)" in lines


def test_a_view_without_a_path_and_a_wrong_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", "overview"]) == 2
    assert "torch-tb-profiler view overview PATH" in capsys.readouterr().err
    assert main(["view", "overview", str(tmp_path / "nothing")]) == 1
    errors = capsys.readouterr().err
    assert "no such folder" in errors and "--logdir" not in errors


def run_in_terminal(arguments: list[str], size: tuple[int, int], typed: bool = False, **variables: str) -> str:
    """Return what a command shows on a terminal of `size` (rows, columns), which is its stdin, too, if `typed`."""
    import fcntl
    import pty
    import struct
    import termios

    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    environment = {**os.environ, "NO_COLOR": "1", "TERM": "xterm", **variables}
    environment.pop("COLUMNS", None)  # of the terminal that runs the tests; it would win over this one's width
    process = subprocess.Popen(
        [sys.executable, "-m", "torch_tb_profiler", *arguments],
        stdin=follower if typed else subprocess.DEVNULL,
        stdout=follower,
        stderr=subprocess.DEVNULL,
        env=environment,
    )
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
    return shown.decode()


@pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo terminals")
def test_a_table_fits_a_real_terminal_and_is_whole_when_piped(samples: Path) -> None:
    arguments = ["view", "operators", str(samples / "transformer"), "--format", "table"]
    shown = run_in_terminal(arguments, (40, 60))
    table = [line for line in shown.splitlines() if "aten::" in line]
    assert len(table) == 20 and max(map(len, table)) <= 60 and "fit (" in shown
    command = [sys.executable, "-m", "torch_tb_profiler", *arguments]
    piped = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True).stdout
    assert "fit (" not in piped and "Host mean" in piped and piped.count("aten::") > 20


@pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo terminals")
def test_what_is_longer_than_the_terminal_goes_through_the_pager(samples: Path, tmp_path: Path) -> None:
    """As with git: not where it fits, not with PAGER=cat, and not where nobody is there to leave it."""
    pager = tmp_path / "pager.py"
    pager.write_text("import os, sys\nprint('paged', os.environ['LESS'])\nprint(sys.stdin.read())\n")
    command = f"'{sys.executable}' '{pager}'"
    arguments = ["view", "operators", str(samples / "transformer"), "--format", "table"]
    low, high = (20, 120), (200, 120)
    shown = run_in_terminal(arguments, low, typed=True, PAGER=command)
    assert shown.startswith("paged FRX") and shown.count("aten::") >= 20
    assert "paged" not in run_in_terminal(arguments, high, typed=True, PAGER=command)
    assert "paged" not in run_in_terminal(arguments, low, PAGER=command)
    unpaged = run_in_terminal(arguments, low, typed=True, PAGER="cat")
    assert unpaged.splitlines() == shown.splitlines()[1 : 1 + len(unpaged.splitlines())]


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
