"""A process that only loads files keeps freed memory for its next column until it releases it."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.support.traces import document
from tests.support.waiting import PATIENCE
from torch_tb_profiler.base.memory import release_memory
from torch_tb_profiler.executors.processes import ProcessExecutor

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library has no such settings")

MEGABYTES = 64
LARGE_MEGABYTES = 256  # more than what the heap may still hold

PROGRAM = """
import sys
from torch_tb_profiler.base.memory import recycle_memory

if sys.argv[1] == "recycled":
    recycle_memory()

from tests.session.test_recycling import retained_megabytes
print(*retained_megabytes())
"""


def retained_megabytes() -> tuple[int, int]:
    """Return the MB that the process holds after freeing a column, and after releasing memory."""
    import numpy as np

    before = _resident()
    np.ones(MEGABYTES << 17)
    freed = _resident()
    release_memory()
    return freed - before, _resident() - before


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") >> 20


@pytest.mark.parametrize(("mode", "retained"), [("recycled", True), ("plain", False)])
def test_freed_memory_is_retained_until_it_is_released(mode: str, retained: bool) -> None:
    printed = subprocess.check_output([sys.executable, "-c", PROGRAM, mode], text=True, timeout=PATIENCE)
    freed, released = map(int, printed.split())
    assert (freed >= MEGABYTES - 1) is retained
    assert released < MEGABYTES / 2


OF_A_CACHED_TRACE = """
import sys
import numpy as np
from tests.session.test_recycling import _resident
from torch_tb_profiler.base.memory import recycle_arrays

if sys.argv[1] == "recycled":
    recycle_arrays()
before = _resident()
np.ones(63 << 17)
print(_resident() - before)
"""


@pytest.mark.parametrize(("mode", "retained"), [("recycled", True), ("plain", False)])
def test_columns_of_a_cached_trace_are_recycled_up_to_64_mb(mode: str, retained: bool) -> None:
    command = [sys.executable, "-c", OF_A_CACHED_TRACE, mode]
    kept_bytes = int(subprocess.check_output(command, text=True, timeout=PATIENCE))
    assert (kept_bytes >= 62) is retained


AFTER_READING = """
from torch_tb_profiler.base.memory import recycle_memory, release_memory, resume_recycling
from tests.session.test_recycling import kept_megabytes

recycle_memory()
release_memory()
analyzing = kept_megabytes()
resume_recycling()
print(analyzing, kept_megabytes())
"""


def kept_megabytes() -> int:
    """Return the MB that the process holds after freeing a large array."""
    import numpy as np

    before = _resident()
    np.ones(LARGE_MEGABYTES << 17)
    return _resident() - before


def test_large_arrays_of_an_analysis_go_back_at_once_until_the_next_file_is_read() -> None:
    command = [sys.executable, "-c", AFTER_READING]
    analyzing, reading = map(int, subprocess.check_output(command, text=True, timeout=PATIENCE).split())
    assert analyzing < LARGE_MEGABYTES / 2
    assert reading >= LARGE_MEGABYTES - 1


OF_A_TRACE = """
import sys
from torch_tb_profiler.base.memory import recycle_memory
from torch_tb_profiler.session.jobs import return_memory

if sys.argv[2] == "recycled":
    recycle_memory()
import numpy as np
from tests.session.test_recycling import MEGABYTES, _resident

before = _resident()
pieces = [np.ones(1 << 13) for _ in range(16 * MEGABYTES)]  # too small to be mappings of their own
last = np.ones(1 << 13)  # what is in use behind them keeps them in the heap
del pieces
return_memory(int(sys.argv[1]))
print(_resident() - before)
"""


@pytest.mark.parametrize(
    ("events", "mode", "retained"),
    [(499_999, "recycled", True), (500_000, "recycled", False), (499_999, "plain", False)],
)
def test_what_reading_few_events_leaves_behind_is_kept_for_their_analyses(
    events: int, mode: str, retained: bool
) -> None:
    command = [sys.executable, "-c", OF_A_TRACE, str(events), mode]
    kept = int(subprocess.check_output(command, text=True, timeout=PATIENCE))
    assert (kept >= MEGABYTES / 2) is retained


def _huge_pages() -> bool:
    advised: bool = import_module("numpy._core.multiarray")._get_madvise_hugepage()
    return advised


def test_a_worker_recycles_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMPY_MADVISE_HUGEPAGE", raising=False)
    executor = ProcessExecutor(1)
    try:
        assert executor.submit(retained_megabytes).result(PATIENCE)[0] >= MEGABYTES - 1
        assert not executor.submit(_huge_pages).result(PATIENCE)
    finally:
        executor.shutdown()


def test_a_command_recycles_memory(tmp_path: Path) -> None:
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 0, "dur": 5}
    (tmp_path / "w.1.pt.trace.json").write_bytes(document([event]))
    program = (
        "import sys; from torch_tb_profiler.cli import main; assert main() == 0; "
        "import numpy; sys.stderr.write(str(numpy._core.multiarray._get_madvise_hugepage()))"
    )
    environment = {**os.environ, "TORCH_PROFILER_SMALL_FILE_BYTES": "0"}
    environment.pop("NUMPY_MADVISE_HUGEPAGE", None)
    command = [sys.executable, "-c", program, "view", "overview", str(tmp_path)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert run.stderr == "False"


GROWING = """
import ctypes
import sys
from contextlib import nullcontext
from pathlib import Path
from torch_tb_profiler.base.memory import growing_in_place, recycle_memory

recycle_memory()
libc = ctypes.CDLL(None)
libc.realloc.restype, libc.realloc.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t]
sizes, arrays, done, rows = (1, 8, 8, 8, 4, 4), [None] * 6, 0, 1 << 16
with growing_in_place() if sys.argv[1] == "in place" else nullcontext():
    while rows < 4 << 20:
        for i, size in enumerate(sizes):
            arrays[i] = libc.realloc(arrays[i], rows * size)
            ctypes.memset(arrays[i] + done * size, 1, (rows - done) * size)
        done, rows = rows, rows + rows // 16
lines = Path("/proc/self/status").read_text().splitlines()
print(done * sum(sizes) >> 20, next(int(line.split()[1]) >> 10 for line in lines if "RssAnon" in line))
"""


@pytest.mark.parametrize(("mode", "wastes"), [("in place", False), ("recycled", True)])
def test_columns_that_grow_together_leave_no_memory_behind(mode: str, wastes: bool) -> None:
    printed = subprocess.check_output([sys.executable, "-c", GROWING, mode], text=True, timeout=PATIENCE)
    size, resident = map(int, printed.split())
    assert (resident > 1.2 * size) is wastes, f"{resident} MB for columns of {size} MB"


WHILE_READING = """
import ctypes
import io
from pathlib import Path
from torch_tb_profiler.base.memory import recycle_memory

recycle_memory()

from tests.support.traces import document
from torch_tb_profiler.ingest.kineto.read import read_chrome_trace

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.restype, libc.free.argtypes = None, [ctypes.c_void_p]


def is_in_heap():
    address = libc.malloc(100 << 20)
    libc.free(address)
    heap = next(line for line in Path("/proc/self/maps").read_text().splitlines() if "[heap]" in line)
    begin, _, end = heap.split()[0].partition("-")
    return int(begin, 16) <= address < int(end, 16)


places = []
event = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 0, "dur": 5}
read_chrome_trace(io.BytesIO(document([event])), report=lambda progress: places.append(is_in_heap()))
print(places[0], places[-1])  # while columns grow, and when they are arranged
"""


def test_columns_of_a_trace_grow_in_mappings_of_their_own() -> None:
    printed = subprocess.check_output([sys.executable, "-c", WHILE_READING], text=True, timeout=PATIENCE)
    assert printed == "False True\n"


POPULATED = """
import sys
import numpy as np
from tests.session.test_recycling import LARGE_MEGABYTES, _resident
from torch_tb_profiler.base.memory import populate_memory, recycle_memory

if sys.argv[1] == "recycled":
    recycle_memory()
before = _resident()
if thread := populate_memory(LARGE_MEGABYTES << 20):
    thread.join()
populated = _resident()
np.ones(LARGE_MEGABYTES - 32 << 17)
print(thread is not None, populated - before, _resident() - populated)
"""


@pytest.mark.skipif(int(platform.release().split(".")[0]) < 6, reason="an older Linux may not populate memory")
def test_pages_of_the_next_columns_are_there_before_they_are_reached() -> None:
    command = [sys.executable, "-c", POPULATED, "recycled"]
    started, populated, more = subprocess.check_output(command, text=True, timeout=PATIENCE).split()
    assert started == "True"
    assert LARGE_MEGABYTES - 40 <= int(populated) <= LARGE_MEGABYTES + 4
    assert int(more) <= 4


def test_nothing_is_populated_where_columns_go_back_to_the_system() -> None:
    command = [sys.executable, "-c", POPULATED, "plain"]
    started, populated, _ = subprocess.check_output(command, text=True, timeout=PATIENCE).split()
    assert (started, int(populated) < 4) == ("False", True)
