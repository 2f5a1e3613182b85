"""Launches, graph nodes and compile records as sources of origins."""

from __future__ import annotations

import gzip
import io
import json
import pickle
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from tests.model.origins.drawing import Event, column, host, kernel_origins, replay
from tests.support.traces import document, read, read_bytes
from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.base.memo import Memo
from torch_tb_profiler.cache.tables import read_table, write_table
from torch_tb_profiler.ingest.compile_log import read_compile_log
from torch_tb_profiler.ingest.node_files import read_node_annotations, read_node_stacks
from torch_tb_profiler.model.origin_records import CompiledGraph, CompiledKernel, OriginRecords
from torch_tb_profiler.model.origins import compiled, origins

NO_STACKS = "no Python stacks were recorded (`profile(with_stack=True)`)"
NO_MODULES = "no `nn.Module` calls were recorded (`profile(with_stack=True)` or `with_modules=True`)"
NO_SHAPES = "no shapes were recorded (`profile(record_shapes=True)`)"


def kernel(name: str, at: float, correlation: int) -> Event:
    return host("kernel", name, at, 5, device=0, stream=7, correlation=correlation) | {"pid": 0, "tid": 7}


EAGER = [
    host("python_function", "train.py(3): step", 0, 100),
    host("python_function", "nn.Module: Linear_0", 1, 50),
    host("python_function", "torch/nn/modules/linear.py(114): forward", 2, 48),
    host("python_function", "model.py(9): forward", 3, 40),
    host("cpu_op", "aten::mm", 5, 20, **{"Input Dims": [[2, 3], [3, 4]]}),
    host("cuda_runtime", "cudaLaunchKernel", 8, 4, correlation=5),
    kernel("gemm", 30, 5),
]


def test_a_launch_gives_operator_module_lines_and_shapes() -> None:
    (row,) = kernel_origins(EAGER)
    assert (row["how"], row["operator"], row["modules"], row["backward"]) == (
        "launch",
        "aten::mm",
        ("Linear_0",),
        0,
    )
    assert row["lines"] == ("model.py:9", "train.py:3")  # PyTorch's own frame is left out
    assert json.loads(row["shapes"]) == [[2, 3], [3, 4]]
    assert row["reason"] is None


class KeptTables:
    """A store of tables in memory."""

    prepares = True

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def load(self, name: str, type_of: Callable[[], Any]) -> tuple[Any] | None:
        return (read_table(self.files[name], type_of()),) if name in self.files else None

    def save(self, name: str, table: object) -> None:
        content = io.BytesIO()
        write_table(table, content)
        self.files[name] = content.getvalue()


@pytest.mark.parametrize("operators", [3, 150, 40_000])
def test_origins_are_read_as_they_were_derived_however_many_values_they_have(operators: int) -> None:
    events = [*EAGER, *compiled_call()]
    for number in range(operators):
        at = 200.0 + 20 * number
        events += [
            host("cpu_op", f"aten::mm{number}", at, 10),
            host("cuda_runtime", "cudaLaunchKernel", at + 1, 2, correlation=100 + number),
            kernel("gemm", at + 12, 100 + number),
        ]
    derived, kept = read(events), KeptTables()
    written, again = (replace(derived, origin_records=OriginRecords(graphs=(GRAPH,)), _memo=Memo()) for _ in "ab")
    written._memo.store = again._memo.store = kept
    found = origins.origins(written)
    columns = msgspec.structs.asdict(found)
    assert found.operator.max() == operators and found.tables["nodes"] and found.tables["modules"]
    saved = dict(kept.files)
    for name, value in msgspec.structs.asdict(origins.origins(again)).items():
        assert np.array_equal(value, columns[name]) if name != "tables" else value == columns[name]
        assert name == "tables" or value.dtype == columns[name].dtype
    assert kept.files == saved and any("_stored_origins" in name for name in saved)


def test_what_was_not_recorded_is_named_as_the_reason() -> None:
    without_stacks = [event for event in EAGER if event["cat"] != "python_function"]
    assert column(kernel_origins(without_stacks), "reason") == [NO_STACKS]
    assert column(kernel_origins([EAGER[-1]]), "reason") == [origins.NO_LAUNCH]
    outside = [event for event in EAGER if not event["name"].startswith("nn.Module")]
    assert column(kernel_origins([*outside, host("python_function", "nn.Module: A_0", 200, 5)]), "reason") == [
        origins.NO_MODULE
    ]


def test_a_truncated_file_may_have_lost_stacks_and_modules_so_no_option_is_named() -> None:
    without_stacks = [event for event in EAGER if event["cat"] != "python_function"]
    cut = document([*without_stacks, host("cpu_op", "aten::add", 60, 5)])[:-25]
    found = origins.origins(read_bytes(cut))
    assert found.value("reason", 0) == "no Python stacks were recorded (the file is truncated, which may be why)"
    without_modules = [event for event in EAGER if not event["name"].startswith("nn.Module")]
    cut = document([*without_modules, host("cpu_op", "aten::add", 60, 5)])[:-25]
    found = origins.origins(read_bytes(cut))
    assert (
        found.value("reason", 0) == "no `nn.Module` calls were recorded (the file is truncated, which may be why)"
    )


def without(prefix: str) -> list[Event]:
    return [event for event in EAGER if not event["name"].startswith(prefix)]


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        (EAGER, None),
        (without("aten::mm"), origins.NO_OPERATOR),
        ([*without("aten::mm"), host("cpu_op", "Torch-Compiled Region: 0/0", 4, 30)], origins.COMPILED_LAUNCH),
        (without("nn.Module"), NO_MODULES),
        ([event for event in without("train.py") if event["name"] != "model.py(9): forward"], origins.NO_LINE),
        ([event | {"args": {}} if event["name"] == "aten::mm" else event for event in EAGER], NO_SHAPES),
    ],
)
def test_each_reason_holds_only_without_what_it_says_is_missing(events: list[Event], reason: str | None) -> None:
    assert column(kernel_origins(events), "reason") == [reason]


def test_a_backward_kernel_has_the_lines_of_its_forward_operator() -> None:
    forward = [
        event | {"args": event["args"] | {"Sequence number": 4}} if event["cat"] == "cpu_op" else event
        for event in EAGER
    ]
    task = "autograd::engine::evaluate_function: MmBackward0"
    backward = [
        host("cpu_op", task, 200, 50, **{"Sequence number": 4, "Fwd thread id": 1}),
        host("cpu_op", "MmBackward0", 201, 48, **{"Sequence number": 4, "Fwd thread id": 1}),
        host("cpu_op", "aten::mm", 202, 40),
        host("cuda_runtime", "cudaLaunchKernel", 208, 4, correlation=6),
    ]
    rows = kernel_origins([*forward, *({**event, "tid": 2} for event in backward), kernel("gemm", 300, 6)])
    assert column(rows, "lines") == [("model.py:9", "train.py:3")] * 2
    assert column(rows, "backward") == [0, 1]
    assert column(rows, "modules") == [("Linear_0",)] * 2


def test_frames_around_a_compiled_region_are_not_those_of_its_kernels() -> None:
    region = host("cpu_op", "Torch-Compiled Region: 0/0", 4, 30)
    (row,) = kernel_origins([*EAGER, region])
    assert (row["operator"], row["lines"], row["reason"]) == ("aten::mm", None, compiled.NO_RECORD)
    inside = host("python_function", "custom_op.py(7): launch", 6, 10)
    (row,) = kernel_origins([*EAGER, region, inside])
    assert row["lines"] == ("custom_op.py:7", "model.py:9", "train.py:3")


def test_node_ids_are_joined_in_both_forms() -> None:
    whole = (3 << 32) | 1
    stacks = {str(whole): ("model.py:9",)}
    for node in (1, whole):
        rows = kernel_origins(replay(["gemm"], nodes=[node]), stacks=stacks)
        assert (column(rows, "lines"), column(rows, "how")) == ([("model.py:9",)], ["graph node"])
    rows = kernel_origins(replay(["gemm"], nodes=[2]), stacks=stacks)
    assert (column(rows, "lines"), column(rows, "reason")) == ([None], [origins.NO_NOTE])


def test_an_event_outside_of_any_graph_has_no_node() -> None:
    events = replay(["gemm"], nodes=[1])
    events[-1]["args"]["graph id"] = 0
    assert column(kernel_origins(events, stacks={"1": ("model.py:9",)}), "lines") == [None]


KEY = "fkey"
GRAPH = CompiledGraph(
    "0/0",
    False,
    KEY,
    (
        CompiledKernel("cpp_fused_add_0", ("add",), ("add_1",), ("model.py:4",)),
        CompiledKernel("extern_kernels.mm", ("linear",), ("mm",), ("model.py:5",)),
    ),
    source="code",
)


def compiled_call(key: str = KEY, names: tuple[str, ...] = ("graph_0_cpp_fused_add_0", "aten::mm")) -> list[Event]:
    inside = [host("cpu_op", name, 12 + 10 * n, 8) for n, name in enumerate(names)]
    return [
        host("cpu_op", "Torch-Compiled Region: 0/0", 0, 100),
        host("user_annotation", f"## Call CompiledFxGraph {key} ##", 10, 60),
        *inside,
        host("cpu_op", "aten::copy_", 23, 2),  # inside aten::mm
    ]


def test_a_compiled_call_has_the_nodes_and_lines_of_its_record() -> None:
    rows = kernel_origins(compiled_call(), graphs=(GRAPH,))
    assert column(rows, "name") == ["graph_0_cpp_fused_add_0", "aten::mm"]
    assert column(rows, "how") == ["compile record"] * 2
    assert column(rows, "nodes") == [("add",), ("linear",)]
    assert column(rows, "lines") == [("model.py:4",), ("model.py:5",)]
    assert column(rows, "compile_id") == ["0/0"] * 2


def graph(
    key: str | None, name: str = "cpp_fused_add_0", source: str = "code", backward: bool = False
) -> CompiledGraph:
    return CompiledGraph("0/0", backward, key, (CompiledKernel(name), GRAPH.kernels[1]), source=source)


@pytest.mark.parametrize(
    ("graphs", "key", "reason"),
    [
        ((), KEY, compiled.NO_RECORD),
        ((graph("other"),), KEY, compiled.OTHER_RECORD),  # compiled again since
        ((graph(KEY, "cpp_fused_mul_0"),), KEY, compiled.OTHER_RECORD),
        ((graph(None, backward=True),), "None", compiled.OTHER_RECORD),
        ((graph(None), graph(None, source="changed")), "None", compiled.SEVERAL_RECORDS),
    ],
)
def test_a_record_that_may_be_of_another_graph_says_nothing(
    graphs: tuple[CompiledGraph, ...], key: str, reason: str
) -> None:
    rows = kernel_origins(compiled_call(key), graphs=graphs)
    assert column(rows, "lines") == [None]  # of the library's kernel nothing says that it is compiled code's
    assert column(rows, "reason") == [reason]


def test_library_kernels_are_joined_where_generated_ones_are_not_recorded() -> None:
    rows = kernel_origins(compiled_call(names=("aten::mm",)), graphs=(GRAPH,))
    assert column(rows, "lines") == [("model.py:5",)]


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        (CompiledKernel("cpp_fused_add_0", ("add",), None, ("model.py:4",)), NO_MODULES),
        (CompiledKernel("cpp_fused_add_0", None, None, ("model.py:4",)), compiled.NO_MAPPING),
        (CompiledKernel("cpp_fused_add_0", ("add",)), compiled.NO_LINES),
    ],
)
def test_a_record_without_nodes_or_lines_is_named_as_the_reason(kernel: CompiledKernel, reason: str) -> None:
    graph = CompiledGraph("0/0", False, KEY, (kernel, GRAPH.kernels[1]))
    assert kernel_origins(compiled_call(), graphs=(graph,))[0]["reason"] == reason


def test_a_device_kernel_has_the_record_of_the_compiled_kernel_that_launched_it() -> None:
    events = [*compiled_call(), host("cuda_runtime", "cudaLaunchKernel", 13, 2, correlation=9), kernel("k", 90, 9)]
    device = kernel_origins(events, graphs=(GRAPH,))[-1]
    assert (device["how"], device["operator"]) == ("launch", "graph_0_cpp_fused_add_0")
    assert (device["nodes"], device["lines"]) == (("add",), ("model.py:4",))


def log_of(*records: tuple[dict[str, object], str]) -> io.BytesIO:
    lines = []
    for head, payload in records:
        frame = {"frame_id": 0, "frame_compile_id": 0}
        lines.append(f"V0101 00:00:00.000000 1 x.py:1] {json.dumps(head | frame)}")
        lines += [f"\t{line}" for line in payload.split("\n")]
    return io.BytesIO("\n".join(lines).encode())


def artifact(name: str, content: object) -> tuple[dict[str, object], str]:
    return {"artifact": {"name": name, "encoding": "json"}}, json.dumps(content)


def code(direction: str, *kernels: str) -> tuple[dict[str, object], str]:
    calls = [f"# [Provenance debug handles] {kernel}:{n}" for n, kernel in enumerate(kernels, 1)]
    return {"inductor_output_code": {"file_path": "/tmp/c.py"}}, "\n".join(
        [f"# AOT ID: ['0_{direction}']", *calls]
    )


STACK = (
    '  File "/home/me/model.py", line 4, in forward\n  File "/x/site-packages/torch/nn/f.py", line 9, in linear\n'
)


def test_the_kernels_of_a_graph_are_those_that_its_own_code_calls() -> None:
    stacks = {"cpp_fused_add_0:1": [STACK, STACK], "of_another_graph:7": [STACK]}
    log = log_of(
        code("forward", "cpp_fused_add_0"),
        artifact(
            "inductor_provenance_tracking_node_mappings",
            {"cppCodeToPost": {"cpp_fused_add_0:1": ["add_1"]}, "postToPre": {"add_1": ["y"]}},
        ),
        artifact("inductor_provenance_tracking_kernel_stack_traces", stacks),
        artifact("fx_graph_cache_miss", {"key": "one"}),
        code("backward", "cpp_fused_mul_0"),
        artifact("inductor_provenance_tracking_kernel_stack_traces", stacks),
        artifact("fx_graph_cache_hit", {"key": "two"}),
    )
    forward, backward = read_compile_log(log)
    assert (forward.key, forward.backward, forward.compile_id) == ("one", False, "0/0")
    assert forward.kernels == (CompiledKernel("cpp_fused_add_0", ("y",), ("add_1",), ("/home/me/model.py:4",)),)
    assert (backward.key, backward.backward) == ("two", True)
    assert backward.kernels == (CompiledKernel("cpp_fused_mul_0"),)


def test_damaged_records_cost_only_themselves() -> None:
    whole = log_of(code("forward", "cpp_fused_add_0")).getvalue()
    for junk in (
        b'V0101 00:00:00.000000 1 x.py:1] {"artifact": \n\t[[[\n',
        b"\xff\xfe\n",
        b"\t{}\n",
        b"[" * 10_000 + b"\n",
    ):
        assert len(read_compile_log(io.BytesIO(junk + whole + b"\n" + junk))) == 1


def test_launch_stacks_are_lines_of_the_program() -> None:
    content = {"7": "model.py:31:forward\n/x/site-packages/torch/nn/m.py:5:call\ntrain.py:12:step", "8": ""}
    packed = io.BytesIO(gzip.compress(json.dumps(content).encode()))
    assert read_node_stacks(packed) == {"7": ("model.py:31", "train.py:12")}
    for broken in (b"{}", gzip.compress(b"[1]"), gzip.compress(b"{}")[:-9]):
        with pytest.raises(TraceError):
            read_node_stacks(io.BytesIO(broken))


def test_a_pickle_of_annotations_may_hold_plain_values_only() -> None:
    notes = {7: [{"name": "layers.0"}, {"autograd_phase": "backward", "str": "x"}], 8: ["region"], "no": [1]}
    found = read_node_annotations(io.BytesIO(pickle.dumps(notes)))
    assert {node: (note.region, note.backward) for node, note in found.items()} == {
        "7": ("x", True),
        "8": ("region", None),
    }
    with pytest.raises(TraceError, match="names a class or function"):
        read_node_annotations(io.BytesIO(pickle.dumps({7: [pytest.raises]})))
