"""Load a trace through a Session until its Overview is there; print seconds, user seconds of all processes.

python ours.py TRACE CACHE_DIR
"""

from __future__ import annotations

import json
import multiprocessing
import resource
import sys
import time

from torch_tb_profiler.base.settings import Settings


def main(trace: str, cache: str) -> None:
    from torch_tb_profiler.session import open_session
    from torch_tb_profiler.views import all_views

    all_views()  # a server has imported them before anybody asks
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    start = time.perf_counter()
    with open_session(trace, Settings(cache_dir=cache)) as session:
        answer = session.view("overview", wait=True)
        wall = time.perf_counter() - start
        workers = len(multiprocessing.active_children())
    assert answer.payload is not None, answer.state
    for process in multiprocessing.active_children():
        process.join()
    user = resource.getrusage(resource.RUSAGE_SELF).ru_utime - before
    user += resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    print(json.dumps({"wall": wall, "user": user, "workers": workers, "events": answer.state.events}))


if __name__ == "__main__":
    main(*sys.argv[1:])
