from __future__ import annotations

from pathlib import Path

from tests.support.traces import draw
from torch_tb_profiler.ingest import read_trace
from torch_tb_profiler.model.calls.autograd import backward_links
from torch_tb_profiler.model.trace import Trace


def pairs(trace: Trace) -> list[tuple[str, str]]:
    names = [trace.strings[code] for code in trace.events.name]
    links = backward_links(trace)
    return [(names[a], names[b]) for a, b in zip(links.forward, links.backward, strict=True)]


PICTURE = """
    host   cpu_op  aten::linear      0  50   Sequence number=7
    host   cpu_op  aten::addmm      10  30   Sequence number=7
    host2  cpu_op  AddmmBackward0  100  40   Sequence number=7 Fwd thread id=1
    host2  cpu_op  aten::mm        110  20
    """


def flow(phase: str, tid: int, ts: float, category: str) -> dict[str, object]:
    return {"ph": phase, "cat": category, "name": category, "id": 3, "pid": 1, "tid": tid, "ts": ts}


def test_by_flow_in_both_spellings() -> None:
    for category in ("fwdbwd", "forward_backward"):
        trace = draw(PICTURE, flow("s", 1, 0, category), flow("f", 2, 100, category))
        assert pairs(trace) == [("aten::linear", "AddmmBackward0")]


def test_a_flow_end_alone_is_no_pair() -> None:
    assert pairs(draw(PICTURE.replace("Sequence number", "x"), flow("f", 2, 100, "fwdbwd"))) == []


def test_by_sequence_number_where_there_are_no_flows() -> None:
    assert pairs(draw(PICTURE)) == [("aten::addmm", "AddmmBackward0")]


def test_a_real_training_run_links_its_layers(samples: Path) -> None:
    file = next((samples / "transformer").glob("*.json.gz"))
    with file.open("rb") as stream:
        found = pairs(read_trace(stream))
    assert len(found) > 50
    assert ("aten::addmm", "AddmmBackward0") in found
