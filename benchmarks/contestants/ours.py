"""Load a trace through a Session until the first page of its Overview is there, then all of it.

Prints seconds, and user seconds of all processes.

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
    before = _user()
    start = time.perf_counter()
    with open_session(trace, Settings(cache_dir=cache)) as session:
        answer = session.view("overview/preview", wait=True)
        wall = time.perf_counter() - start
        workers = len(multiprocessing.active_children())
        loaded, mine = time.perf_counter(), _user()
        whole = session.view("overview", wait=True)
        rest = {"rest wall": time.perf_counter() - loaded, "rest user": _user() - mine}
    assert answer.payload is not None and whole.payload is not None, answer.state
    for process in multiprocessing.active_children():
        process.join()
    user = _user() - before - rest["rest user"] + resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    print(json.dumps({"wall": wall, "user": user, "workers": workers, "events": answer.state.events, **rest}))


def _user() -> float:
    """Return the user seconds of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


if __name__ == "__main__":
    main(*sys.argv[1:])
