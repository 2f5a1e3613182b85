"""Formulas of a user's file: what they compute, what they cannot, and what is none."""

from __future__ import annotations

from typing import Any

import pytest

from torch_tb_profiler.base.formulas import MAX_FORMULA_LENGTH, evaluate_formula, parse_formula

NAMES: dict[str, list[Any]] = {
    "dims": [(8, 16), (16, 4), (), (2, 3)],
    "elements": [128, 64, 0, 6],
    "bytes": [256, 256, 0, 12],
    "values": [None, None, [3, 5], None],
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2 * dims[0][0] * dims[0][1] * dims[1][1]", 2 * 8 * 16 * 4),
        ("bytes[0] + bytes[1] + bytes[3]", 256 + 256 + 12),
        ("elements[0] + elements[3]", 128 + 6),
        ("prod(dims[1]) // 3 % 5 - 0.5", 64 // 3 % 5 - 0.5),
        ("max(dims[0][-1], 3) / min(values[2][1], 2)", 8),
        (" -1 + 2 ", 1),
        ("elements[2]", 0),
    ],
)
def test_formulas_compute_with_the_sizes_of_a_call(text: str, value: float) -> None:
    assert evaluate_formula(text, NAMES) == value


@pytest.mark.parametrize(
    "text",
    [
        "dims[9][0]", "1 / (dims[0][0] - 8)", "values[0]", "dims[0]", "dims[0] * 3", "prod(dims)", "1 - 2",
        "dims[0.5][0]", "max(3)", "1e30 * 10", "prod(dims[0], dims[1])",
    ],
)  # fmt: skip
def test_a_formula_without_a_value_raises_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="the formula"):
        evaluate_formula(text, NAMES)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("2 *", "is not a formula"),
        ("", "is not a formula"),
        ("__import__('os').system('true')", "isn.t allowed in a formula"),
        ("dims.__class__", "isn.t allowed in a formula"),
        (
            "size[0]",
            r"'size' isn.t allowed in a formula \(allowed: numbers, .*dims, elements, bytes, values, min, max, "
            "prod",
        ),
        ("2 ** 9", "isn.t allowed in a formula"),
        ("[1][0]", "isn.t allowed in a formula"),
        ("dims[0:1]", "isn.t allowed in a formula"),
        ("prod(dims[0], x=1)", "isn.t allowed in a formula"),
        ("True", "isn.t allowed in a formula"),
        ("'text'", "isn.t allowed in a formula"),
        ("1 if 2 else 3", "isn.t allowed in a formula"),
        ("1+" * MAX_FORMULA_LENGTH + "1", "the limit is 1,000"),
        ("(" * 400 + "1" + ")" * 400, "formula"),
    ],
)
def test_invalid_formulas_are_refused(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_formula(text)
