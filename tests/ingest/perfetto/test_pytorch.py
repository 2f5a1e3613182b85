"""PyTorch's `.pftrace`: equal to its JSON of the same events, in both of the ways it is written."""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.ingest.rocprof.test_read import normalize, slices
from tests.ingest.test_mutations import BYTES, mangle, survives
from tests.support.producers.pftrace import field
from tests.support.producers.pytorch_pftrace import BOOTED, DEVICE, Form, pytorch_pftrace
from tests.support.traces import event, read, read_bytes
from tests.support.views import ask
from torch_tb_profiler.analyses.timeline.counters import all_series
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.model.calls.links import device_launches, device_links
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.session import Root, Session

PICTURE = """
host   user_annotation  ProfilerStep#1            0  600  External id=1
host   cpu_op           aten::mm                  0   20  External id=2 Input Dims=[[8,8],[8,8]] Sequence number=4
host   cuda_runtime     cudaLaunchKernel          5   10  cbid=211 correlation=1
gpu0   kernel           gemm                     19  200  correlation=1 stream=7 grid=[4,1,1] block=[128,1,1]
host   cpu_op           aten::mm                 20   20  External id=3 Input Dims=[[8,8],[8,8]]
host   cuda_runtime     cudaLaunchKernel         25   10  cbid=211 correlation=2
gpu0   kernel           gemm                    219  280  correlation=2 stream=7 grid=[4,1,1] block=[128,1,1]
host   cuda_runtime     cudaMemcpyAsync          41    4  cbid=41 correlation=3
gpu0   gpu_memcpy       Memcpy~HtoD              50   30  correlation=3 stream=9 bytes=4096
host   cpu_op           aten::item               50  455  External id=4
host   cuda_runtime     cudaStreamSynchronize    52  450  cbid=131 correlation=4
host   cpu_op           aten::mul               540   50  External id=5
host   user_annotation  forward                 540   50
"""
EVENTS = [event(line) for line in PICTURE.strip().splitlines()]
CALLS = ("cuda_runtime",)
GROUPS = [
    [each for each in EVENTS if each["cat"] not in (*CALLS, *DEVICE)],
    [each for each in EVENTS if each["cat"] in CALLS],
    [each for each in EVENTS if each["cat"] in DEVICE],
]
JSON = read(EVENTS)
FORMS: tuple[Form, ...] = ("slices", "stages", "submitted")


def read_drawn(form: Form) -> Trace:
    return read_bytes(pytorch_pftrace(GROUPS, form))


def join_slices(trace: Trace) -> Counter[tuple[Any, ...]]:
    """Return each slice, and for device work the call that launched it, without the ids that join them."""
    rows, launch = device_launches(trace)
    calls = dict(zip(rows.tolist(), launch.tolist(), strict=True))

    def describe_event(row: int) -> tuple[Any, ...]:
        events = trace.events
        named = (trace.strings[events.category[row]], trace.strings[events.name[row]])
        place = trace.threads[events.thread[row]].label
        return *named, place, int(events.start[row]), int(events.duration[row])

    slices = np.flatnonzero(trace.events.phase == ord("X")).tolist()
    return Counter(
        (describe_event(row), describe_event(calls[row]) if calls.get(row, -1) >= 0 else None) for row in slices
    )


@pytest.mark.parametrize("form", FORMS)
def test_parsed_slices_are_the_recorded_ones(form: Form) -> None:
    trace = read_drawn(form)
    assert join_slices(trace) == join_slices(JSON)
    assert form == "submitted" or slices(trace) == slices(JSON)
    assert (trace.producer, trace.clock, trace.health) == ("PyTorch", "epoch", ())
    assert trace.wall_start_ns == (BOOTED if form == "submitted" else None)
    assert steps(trace).names == ("1",)
    links = device_links(trace)
    assert [trace.strings[code] for code in trace.events.name[links.operator].tolist()].count("aten::mm") == 2


@pytest.mark.parametrize(
    "view", ["overview", "operators", "kernels", "idle", "critical_path", "memory", "roofline"]
)
@pytest.mark.parametrize("form", FORMS)
def test_numbers_equal_those_of_the_json(form: Form, view: str) -> None:
    trace = read_drawn(form)
    mine, theirs = normalize(ask(trace, view), trace), normalize(ask(JSON, view), JSON)
    for payload in (mine, theirs):
        payload.pop("base_ns", None)  # the newest files alone say it
    assert mine == theirs


@pytest.mark.parametrize("form", FORMS)
def test_the_timeline_equals_that_of_the_json(form: Form) -> None:
    mine, other = ask(read_drawn(form), "trace"), ask(JSON, "trace")
    for key in mine.keys() - {"base_ns", "wall_ns", "reasons"}:  # which clock it is, the newest files alone say
        assert mine[key] == other[key], key


@pytest.mark.parametrize("form", FORMS)
def test_arguments_equal_those_of_the_json(form: Form) -> None:
    trace = read_drawn(form)
    for key in ("External id", "cbid", "Sequence number", "bytes"):
        assert sorted(trace.arg_int(key).tolist()) == sorted(JSON.arg_int(key).tolist())
    for key in ("Input Dims", "grid", "block"):
        assert set(trace.arg_codes(key)[1]) == set(JSON.arg_codes(key)[1]) != set()


GRAPH = """
host   cuda_runtime  cudaGraphLaunch    5   10  correlation=5
gpu0   kernel        first             20   10  correlation=5 stream=7
gpu0   kernel        second            40   10  correlation=5 stream=7
host   cuda_runtime  cudaLaunchKernel  60   10  correlation=1
gpu0   kernel        third             80   10  correlation=1 stream=7
"""


@pytest.mark.parametrize("packed", [False, True])
def test_a_launch_lists_the_stages_that_it_submitted(packed: bool) -> None:
    """Stages count from 1 like correlations, and are none: the id of the first stage is the correlation of the
    other launch."""
    events = [event(line) for line in GRAPH.strip().splitlines()]
    trace = read_bytes(pytorch_pftrace([events], "submitted", packed=packed))
    assert join_slices(trace) == join_slices(read(events))
    rows, launch = device_launches(trace)
    names = [trace.strings[code] for code in trace.events.name.tolist()]
    assert {names[row]: names[call] for row, call in zip(rows.tolist(), launch.tolist(), strict=True)} == {
        "first": "cudaGraphLaunch",
        "second": "cudaGraphLaunch",
        "third": "cudaLaunchKernel",
    }


def test_a_stage_not_listed_by_a_launch_has_no_launch() -> None:
    events = [event(line) for line in GRAPH.strip().splitlines()]
    host, device = [events[3]], [events[4], events[1]]
    trace = read_bytes(pytorch_pftrace([host, device], "submitted"))
    rows, launch = device_launches(trace)
    names = [trace.strings[code] for code in trace.events.name.tolist()]
    assert {names[row]: call >= 0 for row, call in zip(rows.tolist(), launch.tolist(), strict=True)} == {
        "third": True,
        "first": False,
    }


SAMPLES: list[tuple[int, str, list[tuple[int, float]]]] = [
    (0, "Power (W)", [(0, 300.5), (300_000, 650.25)]),
    (0, "SM Clock (MHz)", [(0, 1980), (250_000, 1410)]),
    (1, "Power (W)", [(100_000, 90.0)]),
]


def test_gpu_counters_are_on_the_timeline() -> None:
    trace = read_bytes(pytorch_pftrace(GROUPS, "submitted", SAMPLES))
    series = {each.name: each for each in all_series(trace) if not each.role}
    expected = {f"{name}, GPU {gpu}": samples for gpu, name, samples in SAMPLES}
    assert {name: list(zip(each.times, each.values, strict=True)) for name, each in series.items()} == expected
    counters = [row for row in ask(trace, "trace")["tracks"] if row["kind"] == "counter" and not row["role"]]
    assert {(row["name"], row["samples"], row["low"], row["high"]) for row in counters} == {
        (name, len(samples), min(v for _, v in samples), max(v for _, v in samples))
        for name, samples in expected.items()
    }
    assert join_slices(trace) == join_slices(JSON)


def test_a_folder_lists_the_trace_and_its_json_once(tmp_path: Path) -> None:
    (tmp_path / "rank0.pftrace.gz").write_bytes(pytorch_pftrace(GROUPS, "stages"))
    (tmp_path / "rank1.pftrace").write_bytes(pytorch_pftrace(GROUPS))
    with Session([Root(str(tmp_path))], Settings(cache_bytes=0)) as session:
        (run,) = session.scan().runs
        assert [(each.name, each.rank) for each in run.workers] == [("rank0", 0), ("rank1", 1)]
        assert session.view("overview", wait=True).payload is not None


def test_an_end_without_a_begin_is_noted() -> None:
    stray = field(1, field(8, 5) + field(10, 1) + field(11, field(9, 2) + field(11, 100)))
    trace = read_bytes(pytorch_pftrace(GROUPS) + stray)
    assert slices(trace) == slices(JSON)
    assert [note.kind for note in trace.health] == ["unmatched_begin_end"]


def test_nesting_of_values_is_limited() -> None:
    deep: Any = 1
    for _ in range(300):
        deep = [deep]
    events = [{**EVENTS[0], "args": {"deep": deep, "flat": [1, [2.5, True]], "object": {"a": "b"}}}]
    trace = read_bytes(pytorch_pftrace([events]))
    assert trace.arg_codes("flat")[1] == ["[1,[2.5,true]]"]
    assert trace.arg_codes("object")[1] == ['{"a":"b"}']
    (text,) = trace.arg_codes("deep")[1]
    assert re.fullmatch(r"\[+null\]+", text) and len(text) < 50


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_no_damage_crashes(form: Form, long: bool) -> None:
    import gzip

    whole = pytorch_pftrace(GROUPS, form, () if form == "slices" else SAMPLES)
    whole = gzip.decompress(whole) if form != "slices" else whole
    chance = random.Random(f"pytorch {form}")
    for _ in range(1000 if long else 60):
        survives(mangle(whole, BYTES, chance))
