"""Load a trace with torch-tb-profiler 0.4.3 until its views can be shown; print seconds and user seconds.

python old_plugin.py TRACE        (in an environment with that version)
"""

from __future__ import annotations

import json
import resource
import sys
import time

from torch_tb_profiler.profiler.data import RunProfileData
from torch_tb_profiler.profiler.run_generator import RunGenerator


def main(trace: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    start = time.perf_counter()
    data = RunProfileData.parse("worker0", None, trace, None)
    profile = RunGenerator("worker0", None, data).generate_run_profile()
    wall = time.perf_counter() - start
    user = resource.getrusage(resource.RUSAGE_SELF).ru_utime - before
    assert profile.overview["steps"]["rows"]
    print(json.dumps({"wall": wall, "user": user}))


if __name__ == "__main__":
    main(*sys.argv[1:])
