"""Traces of Gaudi, opened from a folder: what the card did, engine by engine, against the events as drawn."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.producers import gaudi
from tests.support.producers.gaudi import EDMA, MME, NIC, STEP, TPC, EngineNode
from tests.support.traces import draw, read, read_bytes
from tests.support.waiting import PATIENCE
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.model.communication.collectives import collectives
from torch_tb_profiler.model.devices import device_kind, devices
from torch_tb_profiler.model.kinds import Kind, event_kinds, rows_of_kind
from torch_tb_profiler.session import Root, Session
from torch_tb_profiler.views import find_view
from torch_tb_profiler.views._shared.text import plain


@pytest.fixture(scope="module", params=["legacy", "plugin"])
def plugin(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "plugin")


@pytest.fixture(scope="module")
def session(plugin: bool, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("gaudi")
    (folder / "run").mkdir()
    (folder / "run" / "worker.1.pt.trace.json").write_bytes(gaudi.content(plugin=plugin))
    with Session([Root(str(folder))], Settings(cache_bytes=0)) as session:
        session.scan()
        yield session


def payload(session: Session, slug: str) -> Any:
    answer = session.view(slug, wait=True, timeout=PATIENCE)
    assert answer.payload is not None
    return json.loads(answer.payload)


def busy_us(types: tuple[int, ...]) -> float:
    """Return the µs in which any engine of these types works, microsecond by microsecond."""
    return len(
        {at for node in STEP if node.type in types for at in range(int(node.start), int(node.start + node.length))}
    )


def test_the_overview_counts_each_class_of_engines(session: Session) -> None:
    overview = payload(session, "overview")
    assert [(each["kind"], each["name"]) for each in overview["devices"]] == [("HPU", "HL-225")]
    (step,) = overview["steps"]
    times = step["categories"]
    assert times["kernel"] == 1000 * busy_us((MME, TPC))
    assert times["memcpy"] == 1000 * busy_us((EDMA,))
    assert times["communication"] == 1000 * busy_us((NIC,))
    assert step["duration_ns"] == 300_000


def test_a_node_on_several_engines_is_one_call(session: Session) -> None:
    rows = {row["name"]: row for row in payload(session, "kernels")["rows"]}
    assert {name: (row["calls"], row["total_ns"]) for name, row in rows.items()} == {
        "gemm": (1, 51_000),
        "add_fwd_bf16": (3, (186 - 160 + 208 - 186 + 5) * 1000),
        "Send": (1, 40_000),
        "Recv": (1, 40_000),
    }
    copies = payload(session, "kernels")["memory_operations"]
    assert [(row["name"], row["calls"], row["total_ns"]) for row in copies] == [
        ("memcpy_h2d", 1, 10_000),
        ("StridedCopy", 1, 10_000),
    ]


def test_device_time_of_operators_is_unknown(session: Session) -> None:
    table = payload(session, "operators")
    assert {row["name"]: row["host_total_ns"] for row in table["rows"]} == {
        "aten::mm": 20_000,
        "aten::add": 10_000,
    }
    assert {row["device_self_ns"] for row in table["rows"]} == {None}
    assert "Gaudi" in table["reasons"]["device_self_ns"][0]["text"]


def test_each_engine_is_a_track(session: Session, plugin: bool) -> None:
    timeline = payload(session, "trace")
    groups = [group["name"] for group in timeline["groups"]]
    assert "HPU 0 · HL-225" in groups
    lanes = {
        track["name"]: (track["role"], track["slices"])
        for track in timeline["tracks"]
        if track["kind"] == "stream" and groups[track["group"]] == "HPU 0 · HL-225"
    }
    expected: dict[str, int] = {}
    for node in STEP:
        name = f"{gaudi.NAMES[node.type]} {node.engine}"
        expected[name] = expected.get(name, 0) + 1
    expected["MME 0"] += plugin  # the end of a flow is drawn, but is no work of the engine
    assert {name: count for name, (_, count) in lanes.items()} == expected
    assert {name: role for name, (role, _) in lanes.items()} == {
        name: "communication" if "NIC" in name else "copy" if "DMA" in name else "compute" for name in expected
    }
    assert groups[0] == "python3"


def test_every_slice_is_on_a_track(session: Session, plugin: bool) -> None:
    events = json.loads(gaudi.content(plugin=plugin))["traceEvents"]
    slices = sum(each["ph"] in ("X", "B") for each in events)
    assert sum(track["slices"] for track in payload(session, "trace")["tracks"]) == slices


def test_memory_is_that_of_the_card(session: Session) -> None:
    memory = payload(session, "memory")
    assert [device["name"] for device in memory["devices"]] == ["HPU 0"]
    peak = max(total for _, _, total in gaudi.MEMORY_LOG)
    assert memory["devices"][0]["peak_allocated"]["bytes"] == peak


def test_utilization_is_that_of_all_engines(session: Session) -> None:
    (device,) = payload(session, "overview")["devices"]
    assert device["utilization"] == pytest.approx(busy_us((MME, TPC, NIC)) / 300)


def test_work_on_the_network_is_communication_of_habanas_library() -> None:
    found = collectives(read_bytes(gaudi.content()))
    names = [
        (found.names[back], found.names[what]) for back, what in zip(found.backend, found.collective, strict=True)
    ]
    assert names == [("hccl", "send"), ("hccl", "recv")]


@pytest.mark.parametrize("plugin", [False, True])
def test_hidden_events_and_ends_of_flows_are_not_calls(plugin: bool) -> None:
    trace = read_bytes(gaudi.content(plugin=plugin))
    calls = [trace.strings[trace.events.name[row]] for row in rows_of_kind(trace, Kind.RUNTIME)]
    assert sorted(calls) == ["LaunchSyncTensorsGraph", "SyncTensorsGraphInternal", "enqueueWithExternalEvents"]


def test_an_engine_without_a_name_is_found_by_its_number() -> None:
    events = [
        {"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "ts": 0, "args": {"name": "/device:HPU:0"}},
        *(
            {"ph": "X", "cat": "Runtime", "name": "x", "pid": 0, "tid": tid, "ts": at, "dur": 1}
            for at, tid in enumerate((14002, 4001, 12000, 99000))
        ),
        {"ph": "X", "cat": "Runtime", "name": "x", "pid": 0, "tid": "odd", "ts": 9, "dur": 1},
    ]
    trace = read(events)
    expected = [Kind.KERNEL, Kind.MEMCPY, Kind.UNKNOWN, Kind.UNKNOWN, Kind.UNKNOWN]
    assert event_kinds(trace)[1:].tolist() == expected
    assert device_kind(trace) == "HPU"


def test_a_process_of_another_name_is_not_a_card() -> None:
    name = {"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "ts": 0, "args": {"name": "/device:GPU:0"}}
    trace = read([name, {"ph": "X", "cat": "Runtime", "name": "x", "pid": 0, "tid": 14000, "ts": 0, "dur": 1}])
    assert rows_of_kind(trace, Kind.RUNTIME).tolist() == [1]
    assert devices(trace) == ()


@pytest.mark.parametrize(
    ("second", "calls"),
    [
        (EngineNode(TPC, 1, "add", 105, 10), 1),
        (EngineNode(TPC, 1, "add", 110, 10), 2),  # begins where the other ends
        (EngineNode(TPC, 0, "add", 105, 10), 2),  # on the same engine
        (EngineNode(TPC, 1, "add", 105, 10, recipe=2), 2),
        (EngineNode(TPC, 1, "add", 105, 10, node="another"), 2),
        (EngineNode(TPC, 1, "mul", 105, 10), 2),
        (EngineNode(MME, 1, "add", 105, 10), 2),
    ],
)
def test_which_kernels_are_one_execution(second: EngineNode, calls: int) -> None:
    view: Any = find_view("kernels")
    first = EngineNode(TPC, 0, "add", 100, 10)
    trace = read_bytes(gaudi.content(nodes=(first, second)))
    assert view.build(trace, view.params()).calls == calls


def test_a_filtered_stream_has_its_share_of_every_execution() -> None:
    view: Any = find_view("kernels")
    trace = read_bytes(gaudi.content())
    found = view.build(trace, view.params(stream=7002))
    assert [(row.name, row.calls) for row in found.rows] == [("add_fwd_bf16", 2)]
    assert {stream.stream: stream.total_ns for stream in found.streams}[7002] == 45_000


def test_the_folder_of_a_run_names_its_configuration(tmp_path: Path) -> None:
    (tmp_path / "prof_config.json").write_text("{}")
    (tmp_path / "a.hltv").write_bytes(b"?")
    with Session([Root(str(tmp_path))], Settings()) as session:
        others = session.scan().others
    assert {each.kind for each in others} == {"configuration of the Gaudi profiler", "Gaudi hardware trace"}


def engines(nodes: tuple[EngineNode, ...] = STEP, drop: str = "") -> Any:
    events = [each for each in gaudi.events(plugin=True, nodes=nodes) if not drop or drop not in each["name"]]
    view: Any = find_view("kernels")
    return view.build(read(events), view.params()).engines


def test_each_class_of_engines_has_its_share_of_the_step() -> None:
    found = engines()
    assert {each.name: (each.engines, each.busy_ns, each.share) for each in found.classes} == {
        "MME": (2, 1000 * busy_us((MME,)), busy_us((MME,)) / 300),
        "TPC": (4, 1000 * busy_us((TPC,)), busy_us((TPC,)) / 300),
        "DMA": (2, 1000 * busy_us((EDMA,)), busy_us((EDMA,)) / 300),
        "NIC": (2, 1000 * busy_us((NIC,)), busy_us((NIC,)) / 300),
    }
    first, second = found.recipes
    assert (first.id, first.name, first.nodes) == (1, "graph_1", 7)
    assert first.busy_ns == 1000 * busy_us((MME, TPC, EDMA, NIC))
    assert (second.id, second.name, second.nodes, second.busy_ns) == (2, "graph_2", 1, 5_000)


@pytest.mark.parametrize(
    ("again", "drop", "bound", "expected"),
    [
        (85, "", "device", "They are rarely idle, so the card is the bottleneck."),
        (86, "", "host", "They wait for the host, which builds and launches graphs in 100% of their idle time."),
        (135, "", "host", "They wait for the host, which builds and launches graphs in 50% of their idle time."),
        (136, "", None, "the cause of the rest is unknown"),
        (135, "TensorsGraph", None, "Graph building was not recorded"),
    ],
)
def test_what_the_engines_wait_for(again: int, drop: str, bound: str | None, expected: str) -> None:
    """They work to 55 µs of a step of 300 and again from some time on; graphs are built from 55 to 95."""
    found = engines((EngineNode(MME, 0, "gemm", 0, 55), EngineNode(MME, 0, "gemm", again, 300 - again)), drop)
    assert found.bound == bound
    assert expected in plain(found.headline)


@pytest.mark.parametrize(("computing", "is_network"), [(130, True), (145, False)])
def test_a_card_that_mostly_transfers_is_limited_by_communication(computing: int, is_network: bool) -> None:
    """The network works for 285 µs of 300, and alone for more than half only while the others work for less."""
    nodes = (EngineNode(NIC, 0, "all_reduce", 0, 285), EngineNode(MME, 0, "gemm", 0, computing))
    headline = plain(engines(nodes).headline)
    assert ("only NIC works: communication is the bottleneck" in headline) == is_network
    assert ("so the card is the bottleneck" in headline) != is_network


def test_other_devices_have_no_engines() -> None:
    view: Any = find_view("kernels")
    assert view.build(draw("gpu0 kernel gemm 10 20 stream=1"), view.params()).engines is None
