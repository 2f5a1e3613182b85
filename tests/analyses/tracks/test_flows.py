from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.traces import draw, read
from torch_tb_profiler.analyses.tracks.flows import (
    BACKWARD,
    DEPENDENCY,
    LAUNCH,
    flow_edges,
    launch_of,
    operator_of,
)
from torch_tb_profiler.ingest import read_trace
from torch_tb_profiler.model.calls.autograd import backward_links
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.kinds import Kind, rows_of_kind
from torch_tb_profiler.model.trace import Trace

LAUNCHES = """
host  cpu_op        aten::linear     0   50
host  cpu_op        aten::mm         5   40
host  cuda_runtime  cudaLaunch1     10    5   correlation=1
host  cuda_runtime  cudaLaunch2     20    5   correlation=2
gpu0  kernel        gemm            60   20   correlation=1 stream=7
gpu0  kernel        add             80    5   correlation=2 stream=7
gpu0  kernel        lonely          90    5   correlation=9 stream=7
"""


def slice_name(trace: Trace, row: int) -> str:
    return trace.strings[trace.events.name[row]] if row >= 0 else ""


def row_of(trace: Trace, name: str) -> int:
    code = list(trace.strings).index(name)
    return int(np.flatnonzero(trace.events.name == code)[0])


def links(trace: Trace, name: str) -> list[tuple[str, str, str]]:
    return [
        (edge.kind, slice_name(trace, edge.source), slice_name(trace, edge.target))
        for edge in flow_edges(trace, row_of(trace, name))
    ]


def test_a_kernel_leads_back_to_its_launch_and_operator() -> None:
    trace = draw(LAUNCHES)
    assert links(trace, "gemm") == [(LAUNCH, "cudaLaunch1", "gemm")]
    assert slice_name(trace, operator_of(trace, row_of(trace, "gemm"))) == "aten::mm"
    assert slice_name(trace, operator_of(trace, row_of(trace, "aten::mm"))) == "aten::linear"
    assert links(trace, "lonely") == []
    assert operator_of(trace, row_of(trace, "lonely")) == -1


def test_an_operator_leads_to_all_kernels_launched_inside() -> None:
    trace = draw(LAUNCHES)
    both = [(LAUNCH, "cudaLaunch1", "gemm"), (LAUNCH, "cudaLaunch2", "add")]
    assert links(trace, "aten::linear") == both
    assert links(trace, "aten::mm") == both
    assert links(trace, "cudaLaunch2") == both[1:]


def test_an_operator_launches_nothing_on_another_thread() -> None:
    """A call that runs meanwhile on another thread is not inside it, nor is one whose number was used before."""
    trace = draw("""
    host   cpu_op        busy            0   50
    host2  cuda_runtime  cudaLaunch1    10    5   correlation=1
    gpu0   kernel        elsewhere      60   20   correlation=1 stream=7
    host   cuda_runtime  first          60    5   correlation=2
    host3  cpu_op        reuses         70   20
    host3  cuda_runtime  second         75    5   correlation=2
    gpu0   kernel        of_the_first   90    5   correlation=2 stream=7
    """)
    assert links(trace, "busy") == []
    assert links(trace, "reuses") == []
    assert links(trace, "of_the_first") == [(LAUNCH, "first", "of_the_first")]


@pytest.mark.parametrize(
    ("ids", "operator"),
    [
        ("External id=4", "op"),
        ("External id=5", ""),
        ("External id=0", ""),  # 0 is no id, though an operator may have it
        ("External id=98", ""),  # equal to the correlation it says nothing
    ],
)
def test_an_external_id_decides_only_where_it_is_one(ids: str, operator: str) -> None:
    trace = draw(f"""
    host  cpu_op  op       0 50  External id=4
    host  cpu_op  zero    60  5  External id=0
    host  cpu_op  chance  70  5  External id=98
    gpu0  kernel  k       20 10  correlation=98 stream=7 {ids}
    """)
    assert slice_name(trace, operator_of(trace, row_of(trace, "k"))) == operator


def test_forward_and_backward_by_sequence_number() -> None:
    trace = draw("""
    host   cpu_op  aten::mm          0  10  Sequence number=5
    host2  cpu_op  MmBackward       50  10  Sequence number=5 Fwd thread id=1
    """)
    expected = [(BACKWARD, "aten::mm", "MmBackward")]
    assert links(trace, "aten::mm") == links(trace, "MmBackward") == expected


def flow(phase: str, tid: int, ts: float, id: int | str = 3, **more: object) -> dict[str, object]:
    return {"ph": phase, "cat": "custom", "name": "step", "pid": 1, "tid": tid, "ts": ts, "id": id, **more}


def test_any_flow_of_the_file_from_slice_to_slice() -> None:
    trace = draw(
        """
    host   cpu_op  outer   0  10
    host   cpu_op  a       2   3
    host2  cpu_op  b      20   5
    host3  cpu_op  c      40   5
    host3  cpu_op  again  60   5
    """,
        flow("s", 1, 2),
        flow("t", 2, 22),
        flow("f", 3, 40, bp="e"),
        flow("s", 3, 60, "other"),
    )
    assert links(trace, "a") == [("custom", "a", "b")]
    assert links(trace, "b") == [("custom", "a", "b"), ("custom", "b", "c")]
    assert links(trace, "outer") == links(trace, "again") == []


def test_a_flow_id_that_is_used_again_starts_a_new_flow() -> None:
    trace = draw(
        """
    host   cpu_op  a   0   5
    host2  cpu_op  b  10   5
    host   cpu_op  c  20   5
    host2  cpu_op  d  30   5
    """,
        flow("s", 1, 0),
        flow("f", 2, 10),
        flow("s", 1, 20),
        flow("f", 2, 30),
    )
    assert links(trace, "b") == [("custom", "a", "b")]
    assert links(trace, "c") == [("custom", "c", "d")]


RUNS = (
    "kineto2021_resnet50_v100_nw0",
    "hta_nccl_data",
    "tl_mi300_bert_small",
    "tok_llama_tp2_4090",
    "hta_mtia_inference",
    "dtu_rtx3060_resnet34",
)


@pytest.mark.slow
@pytest.mark.parametrize("run", RUNS)
def test_links_of_one_event_are_those_of_all(corpus: Path, run: str) -> None:
    """Looked up one by one, launch, operator and backward are what the whole-trace tables say."""
    path = sorted((corpus / "traces" / run).iterdir())[0]
    with path.open("rb") as stream:
        trace = read_trace(stream)
    table = device_links(trace)
    chosen = np.random.default_rng(1).choice(len(table.rows), min(200, len(table.rows)), replace=False)
    for i in chosen.tolist():
        row = int(table.rows[i])
        assert launch_of(trace, row) == table.launch[i]
        assert operator_of(trace, row) == table.operator[i], json.dumps(slice_name(trace, row))
        if table.launch[i] >= 0:
            assert (int(table.launch[i]), row) in {(edge.source, edge.target) for edge in flow_edges(trace, row)}
    pairs = backward_links(trace)
    for i in range(0, len(pairs.forward), max(1, len(pairs.forward) // 100)):
        pair = int(pairs.forward[i]), int(pairs.backward[i])
        for end in pair:
            assert pair in {(e.source, e.target) for e in flow_edges(trace, end) if e.kind == BACKWARD}, (
                slice_name(trace, end)
            )
    assert len(rows_of_kind(trace, Kind.CPU_OP)) or not len(pairs.forward)


def test_dependencies_between_nodes_of_a_graph_are_not_launches() -> None:
    def node(category: str, name: str, ts: float, number: int, **args: Any) -> dict[str, Any]:
        args |= {"device": 0, "stream": 7, "correlation": 900, "graph id": 7, "graph node id": number}
        return {"ph": "X", "cat": category, "name": name, "pid": 0, "tid": 7, "ts": ts, "dur": 5, "args": args}

    def flow(phase: str, id: int, ts: float, pid: int, tid: int) -> dict[str, Any]:
        return {"ph": phase, "cat": "ac2g", "name": "ac2g", "id": id, "pid": pid, "tid": tid, "ts": ts, "bp": "e"}

    launch = {"ph": "X", "cat": "cuda_runtime", "name": "cudaGraphLaunch", "pid": 1, "tid": 1, "ts": 0, "dur": 4}
    trace = read(
        [
            launch | {"args": {"correlation": 900}},
            node("kernel", "norm", 10, 0),
            node("kernel", "gemm", 20, 1),
            node("graph_host_node", "HostNode: notify", 30, 2),
            flow("s", 900, 0, 1, 1),
            flow("f", 900, 10, 0, 7),
            flow("s", 2**40, 14, 0, 7),
            flow("f", 2**40, 20, 0, 7),
            flow("s", 2**40 + 1, 24, 0, 7),
            flow("f", 2**40 + 1, 30, 0, 7),
        ]
    )
    names = [trace.strings[code] for code in trace.events.name.tolist()]
    found = {
        (edge.kind, names[edge.source], names[edge.target]) for row in range(4) for edge in flow_edges(trace, row)
    }
    assert found == {
        (LAUNCH, "cudaGraphLaunch", "norm"),
        (LAUNCH, "cudaGraphLaunch", "gemm"),
        (DEPENDENCY, "norm", "gemm"),
        (DEPENDENCY, "gemm", "HostNode: notify"),
    }
