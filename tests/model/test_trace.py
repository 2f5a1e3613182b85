from __future__ import annotations

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from tests.support.traces import draw
from tests.support.waiting import PATIENCE
from torch_tb_profiler.base.memo import derived, seed_derived
from torch_tb_profiler.model.trace import NO_CODE, Trace, name_mask


def test_concurrent_requests_compute_a_derived_table_once() -> None:
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


def test_a_table_is_derived_while_another_one_is() -> None:
    held, began = threading.Event(), threading.Event()

    @derived
    def slow(trace: Trace) -> int:
        began.set()
        assert held.wait(PATIENCE)
        return 1

    @derived
    def quick(trace: Trace) -> int:
        return 2

    trace = draw("host cpu_op a 0 1")
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(slow, trace)
        assert began.wait(PATIENCE)
        assert pool.submit(quick, trace).result(PATIENCE) == 2 and not first.done()
        held.set()
        assert first.result() == 1


def test_a_seeded_table_is_not_derived_again() -> None:
    @derived
    def table(trace: Trace, number: int) -> int:
        return number

    trace = draw("host cpu_op a 0 1")
    table(trace, 1)
    seed_derived(trace, table, 1, value=10)
    seed_derived(trace, table, 2, value=20)
    assert [table(trace, number) for number in (1, 2, 3)] == [1, 20, 3], "what was derived already stays"


def test_a_pickled_trace_has_no_derived_tables() -> None:
    @derived
    def table(trace: Trace) -> object:
        return threading.Lock()  # nothing that could travel

    trace = draw("host cpu_op a 0 1")
    table(trace)
    copy = pickle.loads(pickle.dumps(trace))
    assert copy.events.start.tolist() == trace.events.start.tolist()
    assert copy.strings == trace.strings


def test_derived_tables_are_cached_by_their_arguments() -> None:
    calls: list[tuple[str, bool]] = []

    @derived
    def lanes(trace: Trace, device: str, python: bool = False) -> tuple[str, bool]:
        calls.append((device, python))
        return device, python

    trace = draw("host cpu_op a 0 1")
    for _ in range(2):
        assert lanes(trace, "cpu") == ("cpu", False)
        assert lanes(trace, "gpu") == ("gpu", False)
        assert lanes(trace, "gpu", python=True) == ("gpu", True)
    assert calls == [("cpu", False), ("gpu", False), ("gpu", True)]
    assert lanes(draw("host cpu_op b 0 1"), "cpu") == ("cpu", False), "another trace has tables of its own"
    assert len(calls) == 4


def test_a_default_argument_and_the_same_value_share_one_table() -> None:
    calls: list[tuple[int, int | None, str]] = []

    @derived
    def work(trace: Trace, device: int, stream: int | None = None, step: str = "") -> int:
        calls.append((device, stream, step))
        return len(calls)

    trace = draw("host cpu_op a 0 1")
    spellings = [work(trace, 0), work(trace, 0, None), work(trace, 0, step=""), work(trace, device=0, stream=None)]
    assert spellings == [1, 1, 1, 1]
    assert [work(trace, 0, 7), work(trace, 0, step="7"), work(trace, 1)] == [2, 3, 4]
    assert calls == [(0, None, ""), (0, 7, ""), (0, None, "7"), (1, None, "")]


def test_requests_for_one_combination_compute_it_once() -> None:
    calls: list[int] = []
    together = threading.Barrier(4)

    @derived
    def table(trace: Trace, number: int) -> int:
        calls.append(number)
        return number

    def ask(number: int) -> int:
        together.wait()
        return table(trace, number)

    trace = draw("host cpu_op a 0 1")
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, [1, 1, 2, 2])) == [1, 1, 2, 2]
    assert sorted(calls) == [1, 2]


def test_a_name_mask_tests_only_the_given_codes() -> None:
    computed: list[str] = []

    def is_step(text: str) -> str:
        computed.append(text)
        return "step" * text.startswith("step")

    texts = ["step 1", "other", "step 2", "step 3"]
    assert name_mask(texts, is_step).tolist() == [True, False, True, True, False]
    computed.clear()
    among = np.array([2, NO_CODE, 1, 2, NO_CODE], np.int32)
    assert name_mask(texts, is_step, among).tolist() == [False, False, True, False, False]
    assert computed == ["other", "step 2"]
    assert name_mask([], is_step, np.empty(0, np.int32)).tolist() == [False]
