"""Whether the two sides work on batches of different sizes."""

from __future__ import annotations

from tests.support.traces import draw
from torch_tb_profiler.analyses.diff.batch import batch_sizes
from torch_tb_profiler.analyses.diff.name_tables import renames
from torch_tb_profiler.analyses.diff.roles import Role
from torch_tb_profiler.analyses.diff.trees.tree_alignment import align
from torch_tb_profiler.model.pair import Pair
from torch_tb_profiler.model.trace import Trace


def step(dims: str, *more: str) -> Trace:
    """A step of two operators on inputs of these dimensions, and of further ones without inputs."""
    lines = ["host user_annotation ProfilerStep#1 0 100"]
    lines += [
        f"host cpu_op {name} {at} 10  Input Dims={dims}" for name, at in (("aten::mm", 10), ("aten::relu", 30))
    ]
    lines += [f"host cpu_op {name} {50 + 20 * at} 10" for at, name in enumerate(more)]
    return draw("\n".join(lines))


def sizes(base: str, candidate: str) -> tuple[int, int] | None:
    pair = Pair([step(base)], [step(candidate)])
    return batch_sizes(align(pair), pair)


def test_a_batch_is_known_on_both_sides_or_not_at_all() -> None:
    """The only dimension of an input is none."""
    assert sizes("[[4,8]]", "[[16,8]]") == (4, 16)
    assert sizes("[[4,8]]", "[[16]]") is None
    assert sizes("[[4]]", "[[16,8]]") is None


def test_an_operator_of_one_side_is_renamed_to_nothing() -> None:
    pair = Pair([step("[]")], [step("[]", "aten::new")])
    assert renames(align(pair), Role.OPERATOR) == {}
    pair = Pair([step("[]", "aten::old")], [step("[]")])
    assert renames(align(pair), Role.OPERATOR) == {}
