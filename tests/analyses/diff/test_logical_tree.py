"""The logical timeline of a step as a tree of calls."""

from __future__ import annotations

from tests.support.recordings import TRAINING
from tests.support.traces import draw, event
from torch_tb_profiler.analyses.diff.logical_tree import LogicalTree, logical_tree
from torch_tb_profiler.analyses.diff.roles import PartRole


def path(tree: LogicalTree, element: int) -> tuple[str, ...]:
    names: list[str] = []
    while element >= 0:
        names.append(tree.texts[int(tree.name[element])])
        element = int(tree.parent[element])
    return tuple(reversed(names))


def test_backward_tasks_hang_below_all_modules_around_theirs() -> None:
    """The path starts at the outermost module, the first of all places."""
    tree = logical_tree(draw(TRAINING))
    task = "autograd::engine::evaluate_function: Addmm"
    (element,) = (i for i in range(len(tree)) if tree.texts[int(tree.name[i])] == task)
    assert path(tree, element) == ("Backward", "Net_0", "Linear_0", task)


def test_device_work_hangs_on_what_launched_it() -> None:
    tree = logical_tree(draw(TRAINING))
    kernels = {path(tree, i) for i in range(len(tree)) if tree.role[i] == PartRole.DEVICE}
    assert ("Net_0", "Linear_0", "aten::linear", "aten::addmm", "gemm") in kernels
    assert ("Device work without a launch", "stray") in kernels


def test_an_operator_without_a_name_is_called_so() -> None:
    nameless = event("host cpu_op x 10 20")
    del nameless["name"]
    tree = logical_tree(draw("host user_annotation ProfilerStep#1 0 100", nameless))
    assert [path(tree, i) for i in range(len(tree)) if tree.role[i] == PartRole.OPERATOR] == [
        ("Operators", "(no name)")
    ]


def test_device_work_without_a_host_is_a_tree_of_its_own() -> None:
    tree = logical_tree(draw("gpu0 kernel gemm 0 10\ngpu0 gpu_memcpy Memcpy 20 10"))
    found = [path(tree, i) for i in range(len(tree)) if tree.role[i] == PartRole.DEVICE]
    assert found == [("Device work without a launch", name) for name in ("gemm", "Memcpy")]
