"""The source archive and the wheels of all platforms, made on this machine: `python -m scripts.wheels`.

The native reader is cross-compiled by Zig, whose package is a build requirement. A last wheel, for any platform,
holds no library: what is installed elsewhere reads in Python, and nothing is compiled at installation.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from pathlib import Path

from build import ProjectBuilder
from build.env import DefaultIsolatedEnv
from pyproject_hooks import quiet_subprocess_runner

ROOT = Path(__file__).resolve().parent.parent

_PLATFORMS = (
    "import json, runpy; print(json.dumps([*runpy.run_path('setup.py', run_name='platforms')['TARGETS']]))"
)
"""`setup.py` takes the setuptools of the build requirements: this environment may have an older one, or none."""


def main() -> None:
    """Make them all, in one environment with the build requirements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="folder that they are written into")
    output = str(parser.parse_args().output.absolute())
    with DefaultIsolatedEnv() as environment:
        builder = ProjectBuilder.from_isolated_env(environment, ROOT, quiet_subprocess_runner)
        environment.install(builder.build_system_requires)
        platforms = json.loads(
            subprocess.check_output([environment.python_executable, "-c", _PLATFORMS], cwd=ROOT)
        )
        print(builder.build("sdist", output), flush=True)
        for platform in platforms:
            print(builder.build("wheel", output, {"--build-option": f"--plat-name={platform}"}), flush=True)
        os.environ["TORCH_PROFILER_NATIVE"] = "0"
        print(builder.build("wheel", output), flush=True)


if __name__ == "__main__":
    main()
