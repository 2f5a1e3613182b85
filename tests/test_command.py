"""The test command ends with a summary that names what failed."""

from __future__ import annotations

import importlib.util
import itertools
import os
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from tests.conftest import BATCH, NOT_QUICK
from tests.support.examples import spread_cases, take_turns
from tests.support.waiting import PATIENCE


@pytest.fixture
def command() -> ModuleType:
    path = Path(__file__).resolve().parent.parent / "scripts" / "test.py"
    spec = importlib.util.spec_from_file_location("test_command_script", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_a_good_run_is_one_line(command: ModuleType) -> None:
    parts = [command.Outcome("tests", 0, 700.4), command.Outcome("page", 0, 61)]
    assert command.summarize(parts) == "passed: tests (700 s), page (61 s)"


def test_failures_are_named_within_ten_lines(command: ModuleType) -> None:
    log = command.LOGS / "python-3.10.log"
    parts = [
        command.Outcome("tests", 1, 700, [f"tests/test_a.py::test_{i}" for i in range(20)]),
        command.Outcome("page", 0, 61),
        command.Outcome("Python 3.10", 1, 90, ["tests/test_b.py::test_x"], log),
    ]
    lines = command.summarize(parts).splitlines()
    assert len(lines) <= 10
    assert lines[:2] == ["passed: page (61 s)", "FAILED: tests (700 s, 20 failed)"]
    assert "  tests/test_a.py::test_0" in lines and any("more" in line for line in lines)
    assert lines[-2:] == [
        f"FAILED: Python 3.10 (90 s, 1 failed, see {log.relative_to(command.ROOT)})",
        "  tests/test_b.py::test_x",
    ]


@pytest.mark.parametrize(
    ("codes", "last", "lines"),
    [
        ([0, 0], 0, ["passed: run 1 of 2 (60 s)", "passed: run 2 of 2 (60 s)", "passed: 2 runs in a row"]),
        ([0, 2, 0], 2, ["passed: run 1 of 3 (60 s)", "FAILED: run 2 of 3 (60 s)"]),
        ([0], 0, []),
    ],
)
def test_repeated_tests_tell_of_each_run_and_stop_at_the_first_failure(
    command: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    codes: list[int],
    last: int,
    lines: list[str],
) -> None:
    remaining = iter(codes)
    monkeypatch.setattr(command, "time", SimpleNamespace(monotonic=itertools.count(step=60).__next__))
    assert command.repeat(len(codes), lambda: next(remaining)) == last
    assert capsys.readouterr().out.splitlines() == lines
    assert [*remaining] == ([] if last == 0 else [0])


def test_the_page_is_checked_while_the_rest_is_installed(
    command: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its check begins and ends before the environment is complete, and counts like the others."""
    checked = threading.Event()

    def make_environment(page_is_built: Callable[[], None]) -> tuple[str, str]:
        page_is_built()
        assert checked.wait(PATIENCE)
        return "", ""

    def check_page() -> object:
        checked.set()
        return command.Outcome("page", 3, 60)

    monkeypatch.setattr(command, "LOGS", tmp_path / "logs")
    monkeypatch.setattr(command, "make_environment", make_environment)
    monkeypatch.setattr(command, "check_page", check_page)
    monkeypatch.setattr(command, "run_other_parts", lambda: [command.Outcome("Python code", 0, 80)])
    monkeypatch.setattr(command, "run_tests", lambda *_: 0)
    assert command.main([]) == 3
    assert capsys.readouterr().out == ("passed: tests (0 s), Python code (80 s)\nFAILED: page (60 s)\n")


def test_the_page_is_there_before_what_the_package_needs(
    command: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither of the two waits for the other; the package itself takes the page that is there."""
    steps: list[str] = []
    page_is_built, installed = threading.Event(), threading.Event()

    def build_page() -> None:
        assert installed.wait(PATIENCE)
        steps.append("page")

    def install_with_uv(_: str, packages: list[str]) -> bool:
        if "pyproject.toml" in packages:
            assert {"--extra=test", "--extra=trainers"} <= {*packages}
            installed.set()
        elif "--editable" in packages:
            assert page_is_built.is_set()
            steps.append("package")
        return True

    monkeypatch.setattr(command, "build_page", build_page)
    monkeypatch.setattr(command, "find_chromium", lambda: "chromium")
    monkeypatch.setattr(command, "install_azurite", lambda: "azurite")
    monkeypatch.setattr(command, "install_with_uv", install_with_uv)
    monkeypatch.setattr(command, "run", lambda *_: None)
    monkeypatch.setattr(command.subprocess, "call", lambda *_, **__: 0)
    assert command.make_environment(page_is_built.set) == ("chromium", "azurite")
    assert steps == ["page", "package"]


def test_what_is_repeated_is_what_pytest_is_told(
    command: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr(command, "make_environment", lambda: ("", ""))

    def run_tests(selected: list[str], *_: str) -> int:
        ran.append(selected)
        return 0

    monkeypatch.setattr(command, "run_tests", run_tests)
    assert command.main(["tests/live", "--repeat", "3", "-k", "rank"]) == 0
    assert ran == [["tests/live", "-k", "rank"]] * 3
    for wrong in (["--repeat", "2"], ["--repeat", "0", "tests/live"]):
        with pytest.raises(SystemExit):
            command.main(wrong)
        assert "--repeat needs" in capsys.readouterr().err
    assert len(ran) == 3


@pytest.mark.parametrize(
    ("compiled", "arguments", "processes"),
    [(False, [], ["--collect-only", "-n"]), (True, [], ["-n"]), (False, ["tests/base"], ["-n"])],
)
def test_one_process_compiles_the_modules_of_a_fresh_checkout_for_all(
    command: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    compiled: bool,
    arguments: list[str],
    processes: list[str],
) -> None:
    (tmp_path / "tests" / "__pycache__").mkdir(parents=True)
    if compiled:
        (tmp_path / "tests" / "__pycache__" / "conftest.cpython-311-pytest-9.1.0.pyc").touch()
    ran: list[str] = []
    monkeypatch.setattr(command, "ROOT", tmp_path)

    def call(each: list[str], **_: object) -> int:
        ran.append(each[3])
        return 0

    monkeypatch.setattr(command.subprocess, "call", call)
    assert command.run_tests(arguments, "", "") == 0
    assert ran == processes


@pytest.mark.parametrize(
    ("arrays", "shares"),
    [
        (["old", "new"], ["1/2", "2/2"]),
        (["old", "tested"], ["1/1", ""]),
        (["new", "new"], ["1/1", ""]),
        (["tested", "tested"], ["", ""]),
    ],
)
def test_versions_of_numpy_take_turns_at_arithmetic(
    command: ModuleType, monkeypatch: pytest.MonkeyPatch, arrays: list[str], shares: list[str]
) -> None:
    """The other quick tests run on both Pythons; a Python in between has no turn, and the version tested none."""
    rows = [command.Installation(f"Python {each}", "", [], command.QUICK) for each in (0, 1)]
    between = command.Installation("Python 2", "", [], [*command.QUICK, command.FEW])
    versions = {row.python: version for row, version in zip(rows, arrays, strict=True)}
    monkeypatch.setattr(command, "array_versions", versions.__getitem__)
    *ends, few = command.divide_arithmetic([*rows, between], "tested")
    for options, share in zip(ends, shares, strict=True):
        parts = [option.partition("=")[2].partition("=")[0] for option in options]
        assert options == [f"--share={part}={share}" if share else f"--ignore={part}" for part in parts]
        assert all((command.ROOT / part).exists() for part in parts) and "tests/views" in parts
        assert not {"tests/base", "tests/cli", "tests/ingest", "tests/session"} & {*parts}
    assert few == [f"--ignore={part}" for part in command.ARITHMETIC]


def test_the_versions_of_numpy_and_pyarrow_are_those_of_the_other_python(command: ModuleType) -> None:
    assert len(command.array_versions(sys.executable).split()) == 2
    assert command.array_versions("true") == ""


@pytest.mark.parametrize(
    ("others", "few"),
    [(["3.8", "3.9", "3.99"], ["3.9"]), (["3.8"], []), (["3.98", "3.99"], ["3.98"])],
)
def test_the_oldest_and_the_newest_python_run_a_case_of_each_quick_test(
    command: ModuleType, monkeypatch: pytest.MonkeyPatch, others: list[str], few: list[str]
) -> None:
    """Those in between run some; the Python that runs this may be the oldest itself."""
    monkeypatch.setattr(command, "find_other_pythons", lambda: dict.fromkeys(others, "python"))
    *rows, _ = command.installations(Path("package.whl"))
    expected = {version: [*command.QUICK, command.FEW] if version in few else command.QUICK for version in others}
    assert {row.title.removeprefix("Python "): row.tests for row in rows} == expected
    assert "--cases=1" in command.QUICK
    assert all((command.ROOT / each.partition("=")[2]).exists() for each in command.QUICK if "--ignore" in each)


def test_every_test_of_a_part_has_its_turn_and_those_of_others_stay() -> None:
    names = [f"a/b.py::test_{number}[{case}]" for number in range(5) for case in "xy"]
    names += ["a/c.py::test_alone", "ab/d.py::test_0", "ab/d.py::test_1"]
    turns = [{names[index] for index in take_turns(names, "a", turn, 3)} for turn in (1, 2, 3)]
    assert {name[-4:] for name in turns[1] if "b.py" in name} == {"1[x]", "1[y]", "4[x]", "4[y]"}
    assert set.union(*turns) == {*names}
    assert set.intersection(*turns) == {*names[-3:]}  # a file is never left out
    assert take_turns(names, "a/b.py", 1, 5) == [0, 1, 10, 11, 12]


def test_of_each_test_some_cases_remain_and_others_on_another_python() -> None:
    names = ["a.py::test_alone", *(f"a.py::test_many[{case}]" for case in range(10)), "b.py::test_two[x]"]
    for shift in (12, 13):
        chosen = [names[index] for index in spread_cases(names, 2, shift)]
        assert chosen[0] == names[0] and chosen[-1] == names[-1] and len(chosen) == 4
    assert not {*spread_cases(names, 2, 12)} & {*spread_cases(names, 2, 13)} & {*range(1, 11)}
    assert spread_cases(names, 10, 12) == [*range(12)]


@pytest.fixture(scope="module")
def process() -> int:
    return os.getpid()


@pytest.mark.parametrize("order", ["first", "second"])
def test_tests_that_share_a_fixture_run_in_one_process(
    request: pytest.FixtureRequest, process: int, order: str
) -> None:
    """What the file's fixture makes is made once; some versions of pytest and pytest-xdist don't keep groups."""
    mark = request.node.get_closest_marker("xdist_group")
    assert mark and mark.args == ("tests/test_command.py",)
    if request.config.getoption("loadgroup", False):
        assert request.node.nodeid.endswith(f"[{order}]@tests/test_command.py")


@pytest.mark.browser
def test_tests_in_browsers_of_a_file_run_in_one_process(request: pytest.FixtureRequest) -> None:
    """Their server reads a trace once then; this one needs no browser."""
    mark = request.node.get_closest_marker("xdist_group")
    assert mark and mark.args == ("tests/test_command.py",)


def test_quick_tests_of_a_file_go_to_a_process_in_batches_and_long_ones_alone(
    request: pytest.FixtureRequest,
) -> None:
    batches: Counter[str] = Counter()
    for item in request.session.items:
        mark = item.get_closest_marker("xdist_group")
        if mark and (found := re.fullmatch(r"(\S+) \d+", mark.args[0])):
            assert found.group(1) == item.nodeid.partition("::")[0]
            assert not any(map(item.get_closest_marker, NOT_QUICK)), item.nodeid
            batches[mark.args[0]] += 1
    assert "tests/test_command.py 0" in batches
    assert max(batches.values()) <= BATCH


@pytest.mark.parametrize("content", [b"short", b"\x94" * 1_000_000])
def test_a_test_of_long_bytes_has_a_short_name(content: bytes, request: pytest.FixtureRequest) -> None:
    assert len(request.node.name) < 100
    assert len(content) > 10 or "short" in request.node.name


def test_a_part_that_cannot_start_fails_alone(command: ModuleType, tmp_path: Path) -> None:
    def missing() -> int:
        raise FileNotFoundError("no such interpreter")

    assert command.run_part("Python 9.9", missing).code == 1


def test_failed_tests_are_read_from_the_report(command: ModuleType, tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(
        '<testsuites><testsuite><testcase classname="tests.a" name="test_good"/>'
        '<testcase classname="tests.a" name="test_bad[x@y]@group"><failure/></testcase>'
        '<testcase classname="tests.b" name="test_worse"><error/></testcase></testsuite></testsuites>'
    )
    assert command.read_failures(report) == ["tests/a.py::test_bad[x@y]", "tests/b.py::test_worse"]
    assert command.read_failures(tmp_path / "absent.xml") == []
