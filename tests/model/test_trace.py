from __future__ import annotations

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

from tests.support.traces import draw
from torch_tb_profiler.model.trace import Trace, derived


def test_requests_at_the_same_time_compute_a_derived_table_once() -> None:
    calls: list[int] = []
    together = threading.Barrier(4)

    @derived
    def table(trace: Trace) -> int:
        calls.append(len(trace))
        return len(trace)

    def ask(trace: Trace) -> int:
        together.wait()
        return table(trace)

    trace = draw("host cpu_op a 0 1")
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, [trace] * 4)) == [1] * 4
    assert calls == [1]


def test_a_trace_travels_without_what_was_derived_from_it() -> None:
    @derived
    def table(trace: Trace) -> object:
        return threading.Lock()  # nothing that could travel

    trace = draw("host cpu_op a 0 1")
    table(trace)
    copy = pickle.loads(pickle.dumps(trace))
    assert copy.events.start.tolist() == trace.events.start.tolist()
    assert copy.strings == trace.strings
