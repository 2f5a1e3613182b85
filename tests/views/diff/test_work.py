"""FLOPs and speed of matrix operators on both sides, and when they can't be compared."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.support.diffs import compare, noise, part
from tests.support.recordings import Op, record
from tests.support.traces import draw
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.diff.payload import DiffPayload, DiffWork

FLOPS = 2 * 100 * 200 * 300


def mm(time: float = 90, n: int = 300, shaped: bool = True) -> Op:
    args = {"Input Dims": [[100, 200], [200, n]], "Input type": ["float", "float"]} if shaped else {}
    return Op("aten::mm", 30, kernel=time, args=args)


def side(seed: int, *ops: Op, scatter: float = 0.002) -> Trace:
    layers: Sequence[Op] = [Op("aten::data", 400), *[Op(f"lib::layer{i}", 80, ops) for i in range(10)]]
    return record(layers, 10, noise(seed, scatter, scatter))


def flops_text(payload: DiffPayload) -> str:
    return " ".join(text for text in map(plain, payload.explanation) if "FLOP" in text)


def test_the_same_computed_more_slowly() -> None:
    payload = compare(side(1, mm()), side(2, mm(117)))
    assert flops_text(payload) == (
        "Matrix operators take 29.9% longer for the same FLOPs: 0.133 TFLOP/s before, 0.103 now."
    )
    assert payload.work.base_flops == payload.work.candidate_flops == 10 * FLOPS
    assert payload.work.base_flops_per_s == pytest.approx(FLOPS / 90e-6, rel=0.01)
    assert payload.work.candidate_flops_per_s == pytest.approx(FLOPS / 117e-6, rel=0.01)
    assert (payload.work_coverage.base, payload.work_coverage.candidate) == (1.0, 1.0)


def test_more_computed_as_fast() -> None:
    payload = compare(side(1, mm()), side(2, mm(117, 390)))
    assert flops_text(payload).startswith("Matrix operators compute 30% more FLOPs, at 0.133 TFLOP/s")
    assert "slower" not in flops_text(payload)


def test_fewer_flops() -> None:
    assert "compute 33.3% fewer FLOPs" in flops_text(compare(side(1, mm()), side(2, mm(90, 200))))


def test_nothing_changed() -> None:
    assert "compute the same FLOPs as fast as before" in flops_text(compare(side(1, mm()), side(2, mm())))


def test_too_few_steps_to_compare_the_speed() -> None:
    """FLOPs are certain where times are not."""
    payload = compare(side(1, mm(), scatter=0.2), side(2, mm(), scatter=0.2))
    assert "Same FLOPs in matrix operators; too few steps to compare their speed" in flops_text(payload)


def test_flops_known_on_one_side_only_are_not_fewer() -> None:
    known, half = side(1, mm(), mm()), side(2, mm(), mm(shaped=False))
    assert "Can't compare FLOPs" in flops_text(compare(known, half))
    assert "100%" in flops_text(compare(known, half)) and "50" in flops_text(compare(known, half))
    payload = compare(known, side(2, mm(shaped=False)))
    assert flops_text(payload) == ""
    assert "record_shapes" in plain(payload.reasons["work"])
    assert payload.work.candidate_flops is None


def test_the_share_of_known_work_is_given_where_it_is_incomplete() -> None:
    mystery = Op("lib::mystery", 5, kernel=30)
    payload = compare(side(1, mm(), mystery), side(2, mm(117), mystery))
    assert " now. FLOPs or bytes are known for 75" in flops_text(payload)


def test_operators_say_what_they_compute_inside_the_open_part() -> None:
    base, candidate = side(1, mm()), side(2, mm(117, 390))
    rows = {row.name: row.work for row in compare(base, candidate).level.operators}
    assert rows["lib::layer0"] == DiffWork()
    assert (rows["aten::mm"].base_flops, rows["aten::mm"].candidate_flops) == (10 * FLOPS, 13 * FLOPS)
    parts = compare(base, candidate).level.parts
    layer = next(part_row for part_row in parts if part_row.name == "lib::layer0" or part_row.parts)
    inside = {row.name: row.work for row in part(base, candidate, layer.path).operators}
    assert inside["aten::mm"].base_flops in (FLOPS, 10 * FLOPS)


def test_families_sum_to_all_device_work() -> None:
    payload = compare(side(1, mm()), side(2, mm(117)))
    (family,) = payload.families
    assert (family.name, family.calls.base, family.total.verdict) == ("other", 10.0, "slower")
    assert family.total.base_ns == payload.kernels[0].total.base_ns


def test_a_kernel_has_the_family_of_its_name() -> None:
    """One that is renamed has that of the name in the base, as its row."""
    gemm, softmax, norm = "ampere_sgemm_128x64_nn", "softmax_warp_forward<float>", "layer_norm_kernel"

    def step(*kernels: str) -> Trace:
        lines = [f"gpu0 kernel {name} {at} 9 stream=7" for at, name in enumerate(kernels)]
        return draw("\n".join(["host cpu_op aten::x 0 50", *lines]))

    rows = compare(step(gemm), step(gemm, softmax)).kernels
    assert {row.name: row.family for row in rows} == {gemm: "matrix product", softmax: "softmax"}
    (renamed,) = compare(step(softmax), step(norm)).kernels
    assert (renamed.candidate_name, renamed.family) == (norm, "softmax")
