"""Blocks that are read on several threads come to the columns that one thread comes to, in the same order."""

from __future__ import annotations

import gzip
import io
import json
import random
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

import pytest

from tests.ingest.native.comparison import NEEDED, differences, outcome, read_in_python
from tests.ingest.native.test_equal import ODD_EVENTS, event
from tests.ingest.test_mutations import BYTES, FIELDS, LAYOUTS, mangle
from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.base.threads import lend_threads
from torch_tb_profiler.ingest.kineto import document
from torch_tb_profiler.ingest.kineto.native import decode, library
from torch_tb_profiler.ingest.kineto.read import read_chrome_trace
from torch_tb_profiler.ingest.runtime import Progress
from torch_tb_profiler.model.trace import Trace

pytestmark = NEEDED

ROUNDS, LONG_ROUNDS = 40, 2000
"""Mutated traces per layout."""


class AtOnce(Executor):
    """Runs a job when it is submitted: all that may be read ahead has been read before any of it is taken over."""

    def __init__(self) -> None:
        self.jobs = 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.jobs += 1
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)
        return future


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks so short that a small trace has many, and jobs of two of them."""
    monkeypatch.setattr(document, "BLOCK_BYTES", 1 << 10)
    monkeypatch.setattr(document, "_EDGE", 1 << 8)
    monkeypatch.setattr(decode, "BLOCKS_PER_JOB", 2)


@pytest.fixture
def helpers() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(3) as pool:
        yield pool


def read_ahead(content: bytes, executor: Executor) -> Trace | TraceError:
    with lend_threads(executor):
        return outcome(content)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_columns_and_order_equal_those_of_one_thread(layout: str, helpers: ThreadPoolExecutor) -> None:
    at_once = AtOnce()
    plain = read_in_python(LAYOUTS[layout])
    assert differences(read_ahead(LAYOUTS[layout], at_once), plain) == []
    assert differences(read_ahead(LAYOUTS[layout], helpers), plain) == []
    assert at_once.jobs > 2


@pytest.mark.parametrize("odd", ODD_EVENTS.values(), ids=ODD_EVENTS)
@pytest.mark.parametrize("position", [60, 150])
def test_an_unusual_event_is_decoded_in_python_at_its_position(odd: str, position: int) -> None:
    events = [json.dumps(event(name=f"n{i}", cat=f"c{i % 7}", args={"k": i, f"s{i}": "text"})) for i in range(200)]
    events.insert(position, odd)
    content = f'{{"traceEvents": [{", ".join(events)}], "after": 1}}'.encode()
    at_once = AtOnce()
    assert differences(read_ahead(content, at_once), read_in_python(content)) == []
    assert at_once.jobs > 2


def test_exact_decimals_apply_to_blocks_that_were_read_already() -> None:
    """Of the one block, doubles lose digits; those after it have times that a double rounds otherwise."""
    events = [event(ts=f"{1000 + i}.1234565") for i in range(200)]
    events[70]["ts"] = "8796093022208.125"
    content = json.dumps(events).replace('"ts": "', '"ts": ').replace('", "dur"', ', "dur"').encode()
    plain, found = read_in_python(content), read_ahead(content, AtOnce())
    assert differences(found, plain) == []
    assert isinstance(found, Trace)
    fractions = {int(start) % 1000 for start in found.events.start}
    assert len(fractions) > 1, "both roundings come to the same here"


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
def test_damage_is_handled_as_by_one_thread(layout: str, long: bool) -> None:
    chance = random.Random(f"threads {layout}")
    mutations = BYTES if layout == "gzip" else BYTES + FIELDS
    for number in range(LONG_ROUNDS if long else ROUNDS):
        content = mangle(LAYOUTS[layout], mutations, chance)
        assert differences(read_ahead(content, AtOnce()), outcome(content)) == [], number


def test_events_after_an_early_end_of_the_list_are_read_once() -> None:
    """Another list of objects behind the events looks like events until the block with the bracket is read."""
    events, others = ([json.dumps(event(name=f"{what}{i}")) for i in range(100)] for what in "ab")
    content = f'{{"traceEvents": [{", ".join(events)}], "other": [{", ".join(others)}], "x": 5}}'.encode()
    at_once = AtOnce()
    found = read_ahead(content, at_once)
    assert differences(found, read_in_python(content)) == []
    assert isinstance(found, Trace) and len(found) == 100 and found.metadata["x"] == 5
    assert at_once.jobs > 2


def test_an_aborted_read_leaves_no_running_thread(helpers: ThreadPoolExecutor) -> None:
    class Stopped(Exception):
        pass

    def report(progress: Progress) -> None:
        if progress.events > 50:
            raise Stopped

    content = json.dumps([event(name=f"n{i}") for i in range(2000)]).encode()
    with pytest.MonkeyPatch.context() as patch, lend_threads(helpers):
        patch.setenv("TORCH_PROFILER_NATIVE", "1")
        with pytest.raises(Stopped):
            read_chrome_trace(io.BytesIO(content), size=len(content), report=report)
    helpers.shutdown(wait=True)  # returns: no job waits for another


def test_progress_counts_the_blocks_that_were_added(monkeypatch: pytest.MonkeyPatch) -> None:
    content = json.dumps([event(name=f"n{i}") for i in range(2000)]).encode()
    seen: list[int] = []
    monkeypatch.setenv("TORCH_PROFILER_NATIVE", "1")
    with lend_threads(AtOnce()):
        read_chrome_trace(io.BytesIO(content), report=lambda progress: seen.append(progress.events))
    assert seen == sorted(seen) and seen[-1] == 2000 and len(set(seen)) > 10


def test_a_failed_allocation_on_another_thread_raises_memory_error(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: Any = library._load()
    calls = 0

    class Full:
        def __getattr__(self, name: str) -> object:
            return self._add if name == "reader_add_all" else getattr(loaded, name)

        def _add(self, *arguments: Any) -> int:
            nonlocal calls
            calls += 1
            if calls < 5:
                count: int = loaded.reader_add_all(*arguments)
                return count
            arguments[-1]._obj.value = 2
            return 0

    monkeypatch.setattr(library, "_load", Full)
    content = json.dumps([event(name=f"n{i}") for i in range(500)]).encode()
    with pytest.raises(MemoryError):
        read_ahead(content, AtOnce())


def test_a_compressed_file_is_unpacked_while_threads_read(helpers: ThreadPoolExecutor) -> None:
    chance = random.Random(5)
    events = [event(name=f"n{chance.random()}", args={"k": chance.random()}) for _ in range(3000)]
    content = json.dumps(events).encode()
    at_once = AtOnce()
    packed = gzip.compress(content)
    assert differences(read_ahead(packed, at_once), read_in_python(content)) == []
    assert differences(read_ahead(packed, helpers), read_in_python(content)) == []
    assert at_once.jobs > 2


def test_texts_forgotten_by_a_reader_get_new_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "_MAX_TOKEN_BYTES", 1)
    events = [event(name=f"n{i % 40}", args={"s": f"t{i % 30}", f"k{i}": i}) for i in range(600)]
    content = json.dumps(events).encode()
    assert differences(read_ahead(content, AtOnce()), read_in_python(content)) == []
