"""Batch sizes and renamed operators, found in two aligned trees."""

from __future__ import annotations

from tests.support.traces import draw
from torch_tb_profiler.analyses.diff.batch_sizes import find_batch_sizes, find_sample_counts
from torch_tb_profiler.analyses.diff.changes import _round_up
from torch_tb_profiler.analyses.diff.name_tables import find_renames
from torch_tb_profiler.analyses.diff.roles import PartRole
from torch_tb_profiler.analyses.diff.tree_alignment import align
from torch_tb_profiler.model.trace import Trace, TracePair


def step(dims: str, *more: str) -> Trace:
    """Return a step of two operators on inputs of these dimensions, and of further ones without inputs."""
    lines = ["host user_annotation ProfilerStep#1 0 100"]
    lines += [
        f"host cpu_op {name} {at} 10  Input Dims={dims}" for name, at in (("aten::mm", 10), ("aten::relu", 30))
    ]
    lines += [f"host cpu_op {name} {50 + 20 * at} 10" for at, name in enumerate(more)]
    return draw("\n".join(lines))


def batch_sizes(base: str, candidate: str) -> tuple[int, int] | None:
    pair = TracePair([step(base)], [step(candidate)])
    return find_batch_sizes(align(pair), pair)


def test_a_batch_is_known_on_both_sides_or_not_at_all() -> None:
    """An input with a single dimension doesn't show a batch size."""
    assert batch_sizes("[[4,8]]", "[[16,8]]") == (4, 16)
    assert batch_sizes("[[4,8]]", "[[16]]") is None
    assert batch_sizes("[[4]]", "[[16,8]]") is None


def test_an_added_or_removed_operator_is_not_renamed() -> None:
    pair = TracePair([step("[]")], [step("[]", "aten::new")])
    assert find_renames(align(pair), PartRole.OPERATOR) == {}
    pair = TracePair([step("[]", "aten::old")], [step("[]")])
    assert find_renames(align(pair), PartRole.OPERATOR) == {}


def sample_counts(base: list[int], candidate: list[int]) -> tuple[int, int] | None:
    """Return the samples of steps of matrix products over these rows each."""

    def products(rows: list[int]) -> Trace:
        lines = ["host user_annotation ProfilerStep#1 0 1000"]
        for i, count in enumerate(rows):
            lines.append(f"host cpu_op aten::layer{i} {20 * i} 12")
            lines.append(f"host cpu_op aten::mm {20 * i + 1} 10  Input~Dims=[[{count},8],[8,8]]".replace("~", " "))
        return draw("\n".join(lines))

    pair = TracePair([products(base)], [products(candidate)])
    return find_sample_counts(align(pair), pair)


def test_samples_differ_only_where_most_products_agree_on_the_ratio() -> None:
    """Inputs of variable length have another ratio in each product: that is no other batch."""
    assert sample_counts([32, 32, 4096], [64, 64, 8192]) == (32, 64)
    assert sample_counts([10, 10, 10, 10], [20, 20, 30, 15]) is None
    assert sample_counts([32, 32, 32], [32, 32, 64]) is None


def test_the_steps_that_would_settle_a_change_have_two_digits() -> None:
    assert [_round_up(count) for count in (4.0, 14.0, 94.2, 186.0, 1754.0)] == [4, 14, 95, 190, 1800]
