"""Kernels of graph replays have the origin of the launch that was captured, or none."""

from __future__ import annotations

import json

import pytest

from tests.model.origins.drawing import LAYERS, capture, captures_of, column, host, kernel_origins, replay
from torch_tb_profiler.model.origins import alignment, replayed_kernels
from torch_tb_profiler.model.origins.origins import NO_CAPTURE

KERNELS = [kernel for _, _, kernel in LAYERS]
OPERATORS = [operator for operator, _, _ in LAYERS]
MODULES = [(module,) for _, module, _ in LAYERS]


def test_an_exact_replay_has_all_fields_of_its_capture_in_the_same_file() -> None:
    rows = kernel_origins([*capture(), *replay(KERNELS)])
    assert column(rows, "how") == ["capture"] * 4
    assert column(rows, "operator") == OPERATORS
    assert column(rows, "modules") == MODULES
    assert column(rows, "lines") == [(f"model.py:{10 + n}",) for n in range(4)]
    assert [json.loads(shapes) for shapes in column(rows, "shapes")] == [[[1, n]] for n in range(4)]
    assert column(rows, "reason") == [None] * 4


def test_without_a_capture_the_operator_around_the_replay_is_not_that_of_its_kernels() -> None:
    region = host("cpu_op", "Torch-Compiled Region: 0/0", 9_990, 30)
    rows = kernel_origins([region, *replay(KERNELS)])
    assert column(rows, "operator") == [None] * 4
    assert column(rows, "how") == [None] * 4
    assert set(column(rows, "reason")) == {NO_CAPTURE}


def test_an_unfinished_capture_and_launches_after_it_explain_nothing() -> None:
    unfinished = capture()[:-1]
    assert set(column(kernel_origins([*unfinished, *replay(KERNELS)]), "operator")) == {None}


def test_a_lost_kernel_leaves_its_equal_neighbor_ambiguous() -> None:
    many = [*LAYERS * 5]
    kernels = [kernel for _, _, kernel in many]
    lost = [*kernels[:5], *kernels[6:]]  # one of two products of the second layer
    rows = kernel_origins(replay(lost), captures_of(capture(many)))
    assert column(rows, "operator") == [operator for n, (operator, _, _) in enumerate(many) if n != 5]
    assert rows[5]["modules"] is None
    assert rows[5]["reason"] == replayed_kernels.SEVERAL_LAUNCHES
    assert [row["modules"] for n, row in enumerate(rows) if n != 5 and row["name"] != "gemm"].count(None) == 0


def test_a_replay_of_other_kernels_is_not_forced_into_a_capture() -> None:
    rows = kernel_origins(replay(["gemm", "softmax", "add_kernel"]), captures_of(capture()))
    assert column(rows, "operator") == [None] * 3
    assert set(column(rows, "reason")) == {alignment.OTHER_KERNELS}


def test_a_few_kernels_that_any_large_capture_has_are_of_another_graph() -> None:
    rows = kernel_origins(replay(["gemm", "add_kernel"]), captures_of(capture([*LAYERS * 3])))
    assert column(rows, "operator") == [None] * 2


def test_node_ids_order_a_replay_whose_streams_overlap() -> None:
    swapped = [KERNELS[0], KERNELS[2], KERNELS[1], KERNELS[3]]
    rows = kernel_origins(replay(swapped, nodes=[0, 2, 1, 3], streams=[7, 8, 7, 7]), captures_of(capture()))
    assert column(rows, "modules") == [MODULES[0], MODULES[2], MODULES[1], MODULES[3]]


def test_kernels_of_one_name_on_two_streams_may_be_either() -> None:
    rows = kernel_origins(replay(KERNELS, streams=[7, 7, 8, 7]), captures_of(capture()))
    assert column(rows, "operator") == OPERATORS
    assert column(rows, "modules") == [MODULES[0], None, None, MODULES[3]]


TRITON = ("triton_red_fused_norm_0", "Norm_0", "triton_red_fused_norm_0")


def nvidia(*launches: tuple[str, str, str], forked: bool = False) -> list[dict[str, object]]:
    events = capture(launches, names=False, forked=forked)
    for event in events:
        if event["name"].startswith("triton_"):
            event["args"]["kernel_hash"] = "c0ffee"
    return events


@pytest.mark.parametrize(
    ("kernels", "launches", "forked", "reason"),
    [
        (["triton_red_fused_norm_0", "cutlass"], (TRITON, LAYERS[1]), False, None),
        (["triton_red_fused_norm_0", "cutlass", "fill"], (TRITON, LAYERS[1]), False, alignment.OTHER_COUNT),
        (["cutlass", "triton_red_fused_norm_0"], (TRITON, LAYERS[1]), False, alignment.OTHER_KERNELS),
        (["layer_norm", "cutlass"], LAYERS[:2], False, alignment.NO_NAMES),
        (["triton_red_fused_norm_0", "cutlass"], (TRITON, LAYERS[1]), True, alignment.NO_ORDER),
    ],
)
def test_a_capture_without_names_counts_only_where_count_and_triton_names_agree(
    kernels: list[str], launches: tuple[tuple[str, str, str], ...], forked: bool, reason: str | None
) -> None:
    rows = kernel_origins(replay(kernels), captures_of(nvidia(*launches, forked=forked)))
    expected = [None] * len(kernels) if reason else [launch[0] for launch in launches]
    assert column(rows, "operator") == expected
    assert column(rows, "reason") == [reason] * len(kernels)


@pytest.mark.parametrize(
    ("around", "shape", "reason"),
    [
        ("step[DECODE bs=20]", "32", None),
        ("execute_16_context_0(x)", "16", None),
        (None, None, replayed_kernels.SEVERAL_SIZES),
        ("step[DECODE bs=40]", None, replayed_kernels.NO_SIZE),
    ],
)
def test_the_batch_size_around_a_replay_chooses_the_smallest_capture_that_it_fits_in(
    around: str | None, shape: str | None, reason: str | None
) -> None:
    captures = captures_of(capture(size=32), capture(size=16))
    rows = kernel_origins(replay(KERNELS, around=around), captures)
    assert column(rows, "operator") == OPERATORS
    assert [row["shapes"] and row["shapes"].strip("[").split(",")[0] for row in rows] == [shape] * 4
    assert set(column(rows, "reason")) == {reason}


def test_the_order_of_replays_is_no_evidence() -> None:
    captures = captures_of(capture(size=16), capture(size=32))
    rows = kernel_origins([*replay(KERNELS), *replay(KERNELS, 20_000)], captures)
    assert set(column(rows, "shapes")) == {None}


def test_capture_sizes_come_from_the_file_name_where_no_annotation_says_them() -> None:
    from tests.support.traces import read
    from torch_tb_profiler.model.origins.captures import find_captures

    trace = read(capture())
    sizes = {
        name: find_captures(trace, name, name).captures[0].size for name in ("bs_16_rank0.json", "rank0.json")
    }
    assert sizes == {"bs_16_rank0.json": 16, "rank0.json": None}


def test_a_kernel_renamed_to_a_name_of_another_launch_does_not_take_its_operator() -> None:
    many = [*LAYERS * 5]
    kernels = [kernel for _, _, kernel in many]
    renamed = [*kernels[:8], "add_kernel", *kernels[9:]]  # a layer norm of the third layer
    rows = kernel_origins(replay(renamed), captures_of(capture(many)))
    assert (rows[8]["operator"], rows[8]["reason"]) == (None, replayed_kernels.NOT_CAPTURED)
    others = [(row["operator"], many[n][0]) for n, row in enumerate(rows) if row["operator"] is not None]
    assert len(others) >= 12 and all(found == wanted for found, wanted in others)


@pytest.mark.parametrize(("cells", "reason"), [(10_000, None), (10, alignment.TOO_MANY)])
def test_replays_that_would_take_too_long_to_align_say_so(
    monkeypatch: pytest.MonkeyPatch, cells: int, reason: str | None
) -> None:
    monkeypatch.setattr(alignment, "MAX_CELLS", cells)
    many = [*LAYERS * 5]
    rows = kernel_origins(replay([kernel for _, _, kernel in many[1:]]), captures_of(capture(many)))
    assert set(column(rows, "reason")) == {reason}
