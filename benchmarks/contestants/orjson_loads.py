"""`orjson.loads` of a file's bytes, without the garbage collector; print seconds and user seconds of it alone.

python orjson_loads.py TRACE
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
import time
from pathlib import Path

import orjson


def main(trace: str) -> None:
    gc.disable()
    content = Path(trace).read_bytes()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    start = time.perf_counter()
    document = orjson.loads(content)
    wall = time.perf_counter() - start
    user = resource.getrusage(resource.RUSAGE_SELF).ru_utime - before
    print(json.dumps({"wall": wall, "user": user, "events": len(document["traceEvents"])}), flush=True)
    os._exit(0)  # millions of objects need not be given back one by one


if __name__ == "__main__":
    main(*sys.argv[1:])
