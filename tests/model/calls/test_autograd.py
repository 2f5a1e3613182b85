from __future__ import annotations

from pathlib import Path

from tests.support.traces import draw
from torch_tb_profiler.ingest import read_trace
from torch_tb_profiler.model.calls.autograd import backward_links, backward_tasks
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


def test_flows_link_in_both_spellings() -> None:
    for category in ("fwdbwd", "forward_backward"):
        trace = draw(PICTURE, flow("s", 1, 0, category), flow("f", 2, 100, category))
        assert pairs(trace) == [("aten::linear", "AddmmBackward0")]


def test_a_flow_pairs_any_operator_of_the_trace() -> None:
    """Not only its first one."""
    plain = PICTURE.replace("Sequence number", "x")
    trace = draw(plain, flow("s", 1, 10, "fwdbwd"), flow("f", 2, 100, "fwdbwd"))
    assert pairs(trace) == [("aten::addmm", "AddmmBackward0")]


def test_a_flow_end_alone_links_nothing() -> None:
    assert pairs(draw(PICTURE.replace("Sequence number", "x"), flow("f", 2, 100, "fwdbwd"))) == []


def test_sequence_numbers_link_where_there_are_no_flows() -> None:
    assert pairs(draw(PICTURE)) == [("aten::addmm", "AddmmBackward0")]


def test_a_flow_ends_at_an_operator_of_its_own_thread() -> None:
    """Another thread may begin an operator at the same instant."""
    plain = PICTURE.replace("Sequence number", "x").replace("host2  cpu_op  aten::mm        110  20", "")
    trace = draw(plain, flow("s", 1, 0, "fwdbwd"), flow("f", 3, 100, "fwdbwd"))
    assert pairs(trace) == []


ENGINE = "autograd::engine::evaluate_function:~"


def tasks(trace: Trace) -> dict[int, str | None]:
    """Start (us) of each task of the backward pass -> the forward operator that it belongs to."""
    names = [trace.strings[code] for code in trace.events.name]
    found = backward_tasks(trace)
    starts = (trace.events.start[found.rows] // 1000).tolist()
    return {
        start: names[row] if row >= 0 else None for start, row in zip(starts, found.forward.tolist(), strict=True)
    }


def test_gradient_accumulation_belongs_to_the_task_before_it_on_its_thread() -> None:
    """Each device has a thread of the engine: what another one did before says nothing."""
    trace = draw(f"""
    host   cpu_op  aten::addmm                                    0  30  Sequence number=7
    host2  cpu_op  {ENGINE}AddmmBackward0                       100  40
    host2  cpu_op  AddmmBackward0                               110  20  Sequence number=7 Fwd thread id=1
    host2  cpu_op  {ENGINE}torch::autograd::AccumulateGrad      150  10
    host2  cpu_op  {ENGINE}torch::autograd::AccumulateGrad      170  10
    host3  cpu_op  {ENGINE}torch::autograd::AccumulateGrad      190  10
    """)
    assert tasks(trace) == {100: "aten::addmm", 150: "aten::addmm", 170: "aten::addmm", 190: None}


def test_without_the_engine_the_linked_operators_are_the_tasks() -> None:
    """`AccumulateGrad` inside an engine's operator is that one's work, not a task of its own."""
    trace = draw(f"""
    host   cpu_op  aten::addmm                              0  30  Sequence number=7
    host2  cpu_op  AddmmBackward0                         110  20  Sequence number=7 Fwd thread id=1
    host2  cpu_op  torch::autograd::AccumulateGrad        150  10
    host2  cpu_op  {ENGINE}torch::autograd::AccumulateGrad 170  30
    host2  cpu_op  torch::autograd::AccumulateGrad        180  10
    """)
    assert tasks(trace) == {110: "aten::addmm", 150: "aten::addmm", 170: "aten::addmm"}


def test_a_sequence_number_pairs_only_forward_with_backward() -> None:
    """Negative ones are none, and a `Fwd thread id` of 0 is that of a forward operator."""
    trace = draw("""
    host   cpu_op  aten::mul          0  10  Sequence number=3 Fwd thread id=0
    host   cpu_op  aten::none        20  10  Sequence number=-1
    host2  cpu_op  MulBackward0     100  10  Sequence number=3 Fwd thread id=1
    host2  cpu_op  NoneBackward     120  10  Sequence number=-1 Fwd thread id=1
    host2  cpu_op  LostBackward     140  10  Sequence number=4 Fwd thread id=1
    """)
    assert pairs(trace) == [("aten::mul", "MulBackward0")]


def test_a_real_training_run_links_its_layers(samples: Path) -> None:
    file = next((samples / "transformer").glob("*.json.gz"))
    with file.open("rb") as stream:
        found = pairs(read_trace(stream))
    assert len(found) > 50
    assert ("aten::addmm", "AddmmBackward0") in found
