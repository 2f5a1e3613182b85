"""The Overview of a trace by the command line, from its start on.

Prints seconds, and user seconds of all processes.

python command.py TRACE CACHE_DIR      (absolute paths)
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time

PROGRAM = "from torch_tb_profiler.cli import run; run()"


def main(trace: str, cache: str) -> None:
    isolated = ["-E"] if sys.flags.ignore_environment else []
    command = [sys.executable, *isolated, "-c", PROGRAM, "view", "overview", trace]
    start = time.perf_counter()
    # What the command prepares in the background would slow the next contestant.
    environment = {**os.environ, "TORCH_PROFILER_CACHE_DIR": cache, "TORCH_PROFILER_BACKGROUND": "0"}
    # Python would import what lies in the current folder.
    subprocess.run(command, env=environment, cwd=cache, stdout=subprocess.DEVNULL, check=True)
    wall = time.perf_counter() - start
    print(json.dumps({"wall": wall, "user": resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime}))


if __name__ == "__main__":
    main(*sys.argv[1:])
