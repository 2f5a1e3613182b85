"""The filter by the family of the device work that operators launched."""

from __future__ import annotations

import pytest

from tests.model.work.operator_events import kernel, launch, operator
from tests.support.traces import draw, read
from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.views.operators.build import build
from torch_tb_profiler.views.operators.payload import OperatorsParams, OperatorsPayload

GEMM = "ampere_sgemm_128x64_nn"


@pytest.fixture
def trace() -> Trace:
    return read(
        [
            operator("aten::mm", 0, 9), launch(1, 1), kernel(GEMM, 100, 30, 1),
            operator("aten::softmax", 20, 9), launch(21, 2), kernel("softmax_warp_forward<float>", 150, 20, 2),
            operator("aten::relu", 40, 9),
            kernel("ampere_sgemm_64x64_nn", 200, 5, 9),
        ]
    )  # fmt: skip


def table(trace: Trace, **params: str) -> OperatorsPayload:
    return build(trace, OperatorsParams(**params))  # type: ignore[arg-type]


def names(trace: Trace, **params: str) -> set[str]:
    return {row.name for row in table(trace, **params).rows}


def test_a_filter_selects_the_operators_that_launched_work_of_the_family(trace: Trace) -> None:
    assert names(trace) == {"aten::mm", "aten::softmax", "aten::relu"}
    assert names(trace, family="matrix product") == {"aten::mm"}
    assert names(trace, family="softmax") == {"aten::softmax"}
    assert names(trace, family="norm") == set()
    assert names(trace, family="softmax", kernel=GEMM) == set()


def test_work_that_no_operator_launched_is_filtered_too(trace: Trace) -> None:
    unlinked = [table(trace, family=family).unlinked for family in ("", "matrix product", "softmax")]
    assert [work.device_ns if work else None for work in unlinked] == [5000, 5000, 0]


def test_the_families_to_choose_from_are_those_that_operators_launched(trace: Trace) -> None:
    assert table(trace, family="softmax").families == ["matrix product", "softmax"]
    assert table(draw("host cpu_op aten::mm 0 10")).families == []


def test_an_unknown_family_is_refused_with_the_list_of_families(trace: Trace) -> None:
    with pytest.raises(UsageError) as error:
        table(trace, family="gemm")
    assert "matrix product" in (error.value.hint or "")
