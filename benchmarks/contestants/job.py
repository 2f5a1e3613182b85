"""Open the distributed view of a folder of ranks; print seconds until all of them are in it.

python job.py FOLDER CACHE_DIR
"""

from __future__ import annotations

import json
import multiprocessing
import resource
import sys
import time

from torch_tb_profiler.base.settings import Settings


def main(folder: str, cache: str) -> None:
    from torch_tb_profiler.session import open_session

    start = time.perf_counter()
    with open_session(folder, Settings(cache_dir=cache)) as session:
        answer = session.view("distributed", wait=True)
        wall = time.perf_counter() - start
        begin = time.perf_counter()
        session.view("distributed/collectives", params={"limit": "100"}, wait=True)
        page = time.perf_counter() - begin
    assert answer.payload is not None, answer.state
    payload = json.loads(answer.payload)
    for process in multiprocessing.active_children():
        process.join()
    user = sum(resource.getrusage(who).ru_utime for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    facts = {
        "wall": wall,
        "user": user,
        "page": page,
        "ranks": sum(rank["compared"] for rank in payload["ranks"]),
        "collectives": sum(each["compared"] for group in payload["groups"] for each in group["operations"]),
        "payload": len(answer.payload),
    }
    print(json.dumps(facts))


if __name__ == "__main__":
    main(*sys.argv[1:])
