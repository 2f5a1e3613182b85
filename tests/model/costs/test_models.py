"""Tests of operators with a model in the user's file."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.model.work.operator_events import BF16, kernel, launch, operator
from tests.support.traces import read
from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.model.costs.models import MISSING_FORMULA
from torch_tb_profiler.model.hardware.catalog import parse_user_catalog
from torch_tb_profiler.model.work.operator_work import OperatorWork, operator_work

MLP = """[[operator]]
name = "lib::mlp"
unit = "matrix"
flops = "2 * 2 * dims[0][0] * prod(dims[1])"
bytes = "bytes[0] + bytes[1]"
"""
X: dict[str, Any] = {"dims": [[8, 16], [16, 64]], "types": [BF16, BF16]}


def work_with(toml: str, *events: dict[str, Any]) -> tuple[OperatorWork, list[str]]:
    trace = replace(read([*events]), catalog=parse_user_catalog(toml, "mine.toml"))
    done = operator_work(trace)
    return done, [trace.strings[code] for code in trace.events.name[done.owners.calls]]


def test_an_operator_has_the_work_of_the_users_formulas() -> None:
    events = [operator("lib::mlp", 0, 9, **X), launch(1, 1), kernel("mlp", 20, 5, 1)]
    done, names = work_with(MLP, *events)
    assert (names, done.flops.tolist(), done.bytes.tolist()) == (["lib::mlp"], [32_768], [2304])
    assert (done.matrix.tolist(), done.types[done.type[0]], done.reason.tolist()) == ([True], "bf16", [-1])
    plain, _ = work_with("", *events)
    assert plain.reasons == ("this operator has no formula for FLOPs and bytes",)


def test_it_owns_kernels_launched_by_inner_operators_without_a_model() -> None:
    done, names = work_with(
        MLP, operator("lib::mlp", 0, 20, **X), operator("lib::inner", 1, 9), launch(2, 1), kernel("k", 20, 5, 1)
    )
    assert (names, done.flops.tolist()) == (["lib::mlp"], [32_768])


def test_it_is_a_wrapper_if_products_inside_it_are_modeled() -> None:
    done, names = work_with(
        MLP, operator("lib::mlp", 0, 20, **X), operator("aten::mm", 1, 9, **X), launch(2, 1), kernel("k", 20, 5, 1)
    )
    assert (names, done.flops.tolist()) == (["aten::mm"], [2 * 8 * 16 * 64])


def test_it_replaces_our_model() -> None:
    toml = '[[operator]]\nname = "aten::mm"\nflops = "7"\nbytes = "3"\n'
    done, _ = work_with(toml, operator("aten::mm", 0, 9, **X), launch(1, 1), kernel("k", 20, 5, 1))
    assert (done.flops.tolist(), done.bytes.tolist(), done.matrix.tolist()) == ([7], [3], [False])


@pytest.mark.parametrize(
    ("formulas", "flops", "moved", "reason"),
    [
        ('flops = "dims[0][0]"', 8, None, MISSING_FORMULA),
        ('bytes = "bytes[0]"', None, 256, MISSING_FORMULA),
        ('flops = "values[2][1] + elements[3]"\nbytes = "bytes[3]"', 11, 12, None),
        ('flops = "values[1]"\nbytes = "elements[2]"', None, 0, "the formula 'values[1]' has no value"),
        ('flops = "dims[5][0]"\nbytes = "bytes[0]"', None, 256, "the formula 'dims[5][0]' has no value"),
    ],
)
def test_work_without_a_formula_or_value_is_unknown(
    formulas: str, flops: float | None, moved: float | None, reason: str | None
) -> None:
    toml = f'[[operator]]\nname = "lib::mlp"\n{formulas}\n'
    inputs = {
        "dims": [[8, 16], [16, 64], [], [2, 3]],
        "types": [BF16, BF16, "Scalar", "float"],
        "strides": [[16, 1], [64, 1], [], [0, 1]],  # of the last a dimension is expanded
        "values": ["", "True", "[3, 5]", ""],
    }
    done, _ = work_with(toml, operator("lib::mlp", 0, 9, **inputs), launch(1, 1), kernel("k", 20, 5, 1))
    known = [
        [None if value != value else value for value in column.tolist()] for column in (done.flops, done.bytes)
    ]
    assert known == [[flops], [moved]]
    assert reason is None or done.reasons[done.reason[0]].startswith(reason)
    assert bool(done.reason[0] < 0) is (reason is None)


def test_without_shapes_the_work_is_unknown() -> None:
    done, _ = work_with(MLP, operator("lib::mlp", 0, 9), launch(1, 1), kernel("k", 20, 5, 1))
    assert done.flops.tolist() != done.flops.tolist()  # NaN
    assert "record_shapes" in done.reasons[done.reason[0]]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (MLP + MLP, r"^mine.toml, operator 2 \('lib::mlp'\): an earlier entry has the same name"),
        ('[[operator]]\nname = "a"\n', r"operator 1 \('a'\): it has neither flops nor bytes"),
        ('[[operator]]\nflops = "1"\n', r"operator 1 \('no name'\)"),
        ('[[operator]]\nname = "a"\nflops = "size"\n', r"operator 1 \('a'\): 'size' isn't allowed in a formula"),
        ('[[operator]]\nname = "a"\nbytes = "2 *"\n', r"operator 1 \('a'\): '2 \*' is not a formula"),
        ('[[operator]]\nname = "a"\nflops = 3\n', r"operator 1 \('a'\): .*flops"),
        ('[[operator]]\nname = "a"\nflops = "1"\nunit = "tensor"\n', r"operator 1 \('a'\): .*unit"),
        ('[[operator]]\nname = "a"\nflops = "1"\nspeed = 1\n', r"operator 1 \('a'\): .*speed"),
        ("operator = 1\n", r"^mine.toml: .*operator"),
    ],
)
def test_an_error_in_a_file_names_its_place(text: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        parse_user_catalog(text, "mine.toml")
