"""The diff of recordings whose differences are known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.recordings import Op, record
from tests.support.traces import draw
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.views.diff import build as diff
from torch_tb_profiler.views.diff.level import build as build_part
from torch_tb_profiler.views.diff.payload import DiffLevel, DiffParams, DiffPart, DiffPartParams, DiffPayload


def compare(base: Trace, candidate: Trace) -> DiffPayload:
    return diff.build(candidate, base, DiffParams())


def part(base: Trace, candidate: Trace, path: str) -> DiffLevel:
    return build_part(candidate, base, DiffPartParams(path=path))


def noise(seed: int, step: float = 0.002, op: float = 0.003) -> Any:
    """A factor per step, and one more per operator."""
    rng = np.random.default_rng(seed)
    of_step = 1 + step * rng.standard_normal(1000)
    return lambda number: float(of_step[number] * (1 + op * rng.standard_normal()))


def values(payload: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """Every value of a key with this prefix."""
    if isinstance(payload, dict):
        for key, value in payload.items():
            if key.startswith(prefix):
                yield key, value
            yield from values(value, prefix)
    elif isinstance(payload, list):
        for each in payload:
            yield from values(each, prefix)


def verdicts(found: DiffPayload | DiffLevel) -> set[str]:
    return {verdict for _, verdict in values(msgspec.to_builtins(found), "verdict")}


def walk(base: Trace, candidate: Trace, path: str = "") -> Iterator[DiffPart]:
    for each in part(base, candidate, path).parts:
        yield each
        if each.parts:
            yield from walk(base, candidate, each.path)


# ---- laws -------------------------------------------------------------------------------------------


@st.composite
def branches(draw: Any) -> list[Op]:
    """Five operators with random ones inside; names tell position and may repeat within a branch."""

    def tree(branch: int, depth: int) -> Op:
        name = f"aten::op{branch}_{draw(st.integers(0, 3))}_{depth}"
        count = draw(st.integers(0, 3)) if depth < 3 else 0
        kernel = draw(st.sampled_from([0.0, 0.0, 30.0, 80.0]))
        return Op(name, draw(st.integers(10, 60)), [tree(branch, depth + 1) for _ in range(count)], kernel)

    return [
        Op(f"aten::branch{i}", 20, [tree(i, 1), Op(f"aten::leaf{i}", 50, kernel=40.0), tree(i, 1)])
        for i in range(5)
    ]


@settings(max_examples=15, deadline=None)
@given(branches(), st.integers(2, 6))
def test_identical_runs_differ_in_nothing(ops: list[Op], steps: int) -> None:
    found = compare(record(ops, steps, noise(1)), record(ops, steps, noise(1)))
    payload = msgspec.to_builtins(found)
    deltas = list(values(payload, "delta_"))
    assert len(deltas) > 100
    assert all(value in (0, None) for _, value in deltas), deltas
    assert verdicts(found) <= {"equal", "unknown"}
    assert {status for _, status in values(payload, "status")} == {"matched"}


def changed(ops: Sequence[Op]) -> list[Op]:
    """One operator slowed by 400 us, one renamed, one added, one removed, each in a branch of its own."""
    slowed, renamed, added, removed, same = ops

    def leaf(op: Op, *instead: Op) -> Op:
        first, middle, last = op.inside
        return replace(op, inside=[first, *instead, last])

    return [
        leaf(slowed, replace(slowed.inside[1], own=450)),
        leaf(renamed, replace(renamed.inside[1], name="aten::other")),
        leaf(added, added.inside[1], Op("aten::new", 400)),
        leaf(removed),
        same,
    ]


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(branches(), st.integers(0, 10**6))
def test_exactly_what_was_changed_is_reported(ops: list[Op], seed: int) -> None:
    base, candidate = record(ops, 6, noise(seed)), record(changed(ops), 9, noise(seed + 1))
    found = compare(base, candidate)
    rows = {row.name: row for row in found.level.operators}
    real = {
        name: row.host_self.verdict
        for name, row in rows.items()
        if row.host_self.verdict not in ("noise", "equal")
    }
    assert real == {"aten::leaf0": "slower", "aten::new": "slower", "aten::leaf3": "faster"}
    assert rows["aten::leaf0"].host_self.delta_ns == pytest.approx(400_000, rel=0.02)
    assert rows["aten::new"].host_self.delta_ns == pytest.approx(400_000, rel=0.02)
    assert rows["aten::leaf3"].host_self.delta_ns == pytest.approx(-50_000, rel=0.02)
    statuses = {name: row.status for name, row in rows.items() if row.status != "matched"}
    assert statuses == {"aten::new": "added", "aten::leaf3": "removed", "aten::leaf1": "renamed"}
    assert rows["aten::leaf1"].candidate_name == "aten::other"
    kernels = {row.name: row.status for row in found.kernels if row.status != "matched"}
    assert kernels == {"aten::leaf3 kernel": "removed", "aten::leaf1 kernel": "renamed"}
    assert [row.total.verdict for row in found.kernels if row.name == "aten::leaf3 kernel"] == ["faster"]
    parts = {each.name: each.status for each in walk(base, candidate) if each.status != "matched"}
    launch = {"cudaLaunchKernel": "removed"}  # of the operator that was removed
    assert parts in ({**statuses, **kernels}, {**statuses, **kernels, **launch})
    assert found.step.verdict == "slower"
    assert any("6 of the base, 9 of the candidate" in note for note in found.notes)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(branches(), branches(), st.integers(1, 4), st.integers(1, 4))
def test_parts_and_bars_sum_to_the_whole(ops: list[Op], other: list[Op], first: int, second: int) -> None:
    base, candidate = record(ops, first, noise(3)), record(other, second, noise(4))
    found = compare(base, candidate)
    for fall in found.waterfalls:
        assert sum(bar.delta_ns for bar in fall.bars) == fall.delta_ns == fall.bars[-1].delta_accumulated_ns
        assert sum(bar.base_ns or 0 for bar in fall.bars) == fall.base_ns == found.step.base_ns
        assert sum(bar.candidate_ns or 0 for bar in fall.bars) == fall.candidate_ns
        assert fall.delta_ns == found.step.delta_ns
    last = found.level.parts[-1]
    host = sum(each.host.delta_ns or 0 for each in found.level.parts)
    assert last.delta_accumulated_ns == pytest.approx(host)
    assert host == pytest.approx(found.step.delta_ns, abs=1)
    open_ = [each for each in found.level.parts if each.parts]
    while open_:
        above = open_.pop()
        level = part(base, candidate, above.path)
        for metric in ("host", "device"):
            total = getattr(above, metric)
            inside = [getattr(each, metric) for each in level.parts]
            for side in ("base_ns", "candidate_ns", "delta_ns"):
                assert sum(getattr(each, side) for each in inside) == pytest.approx(getattr(total, side), abs=1)
        open_ += [each for each in level.parts if each.parts]


def test_the_sides_can_be_switched() -> None:
    ops = [Op("aten::a", 100, [Op("aten::b", 50, kernel=300)]), Op("aten::c", 20)]
    more = [Op("aten::a", 140, [Op("aten::d", 50, kernel=200)])]
    base, candidate = record(ops, 4, noise(5)), record(more, 5, noise(6))
    there, back = compare(base, candidate), compare(candidate, base)
    assert there.step.delta_ns == pytest.approx(-(back.step.delta_ns or 0))
    swapped = {"slower": "faster", "faster": "slower"}
    for old, new in zip(there.waterfalls, back.waterfalls, strict=True):
        assert [swapped.get(bar.verdict, bar.verdict) for bar in old.bars] == [bar.verdict for bar in new.bars]
    flip = {"added": "removed", "removed": "added"}
    statuses = [
        {
            (row.name if row.status != "renamed" else "b d"): flip.get(row.status, row.status)
            for row in found.level.operators
        }
        for found in (there, back)
    ]
    assert statuses[0] == {name: flip.get(status, status) for name, status in statuses[1].items()}


# ---- is it real? ------------------------------------------------------------------------------------

WORK = [
    Op("aten::data", 400),
    *[
        Op(f"aten::layer{i}", 80 + 10 * i, [Op("aten::mm", 30, kernel=90 + 5 * i), Op("aten::add_", 25)])
        for i in range(12)
    ],
]


def test_two_halves_of_equal_work_flag_nothing_in_19_of_20_draws() -> None:
    flagged = 0
    for seed in range(20):
        halves = [record(WORK, 10, noise(100 + 2 * seed + half, step=0.01, op=0.05)) for half in (0, 1)]
        flagged += bool(verdicts(compare(*halves)) & {"slower", "faster"})
    assert flagged <= 1


def test_a_slowdown_of_5_percent_is_found_in_19_of_20_draws() -> None:
    slow = [replace(op, own=op.own * 1.05, kernel=op.kernel * 1.05) for op in WORK]
    step = sum(op.own + sum(each.own for each in op.inside) for op in WORK)
    slow = [*WORK, Op("aten::extra", 0.05 * (step + 12 * 2.0 + 10))]
    found = 0
    for seed in range(20):
        base = record(WORK, 10, noise(200 + 2 * seed, step=0.01, op=0.0))
        candidate = record(slow, 10, noise(201 + 2 * seed, step=0.01, op=0.0))
        found += compare(base, candidate).step.verdict == "slower"
    assert found >= 19


@pytest.mark.parametrize("counts", [(1, 1), (1, 10), (10, 1)])
def test_with_one_step_it_cannot_tell(counts: tuple[int, int]) -> None:
    base, candidate = (record(ops, steps) for ops, steps in zip((WORK, WORK[1:]), counts, strict=True))
    found = compare(base, candidate)
    assert verdicts(found) <= {"unknown", "equal"}
    assert found.step.verdict == "unknown"
    assert found.step.low_ns is found.step.q is None
    assert "fewer than two steps" in found.reasons["q"]
    assert any("cannot be told" in text or "told from chance" in text for text in found.summary)


def test_the_answer_is_the_same_every_time() -> None:
    pair = record(WORK, 5, noise(1)), record(WORK[:-1], 4, noise(2))
    assert msgspec.json.encode(compare(*pair)) == msgspec.json.encode(compare(*pair))


def test_a_change_must_have_the_minimum_effect() -> None:
    base = record(WORK, 10, noise(1, 1e-5, 1e-5))
    candidate = record([replace(op, own=op.own * 1.03) for op in WORK], 10, noise(2, 1e-5, 1e-5))
    assert diff.build(candidate, base, DiffParams(min_effect=0.01)).step.verdict == "slower"
    assert diff.build(candidate, base, DiffParams(min_effect=0.05)).step.verdict == "noise"


# ---- the logical timeline ---------------------------------------------------------------------------

TRAINING = """
host  user_annotation  ProfilerStep#1                                  0  100
host  user_annotation  enumerate(DataLoader)#_SingleProcess.__next__   1   19
host  cpu_op           aten::stack                                     2   10
host  python_function  nn.Module:~Net_0                               21   20
host  python_function  torch/nn/functional.py(1):~linear              22   18
host  cpu_op           aten::linear                                   23   16   Sequence~number=5
host  cuda_runtime     cudaLaunchKernel                               25    2   correlation=7
gpu0  kernel           gemm                                           30   20   correlation=7 stream=7
host  cpu_op           aten::mse_loss                                 42    3
host2 cpu_op           autograd::engine::evaluate_function:~AddmmBackward0  50 20
host2 cpu_op           AddmmBackward0                                 51   18   Sequence~number=5 Fwd~thread~id=1
host  user_annotation  Optimizer.step#SGD.step                        80   10
host  cpu_op           aten::add_                                     81    5
""".replace("Sequence~number", "Sequence number").replace("Fwd~thread~id", "Fwd thread id")


def test_the_parts_of_a_step() -> None:
    trace = draw(TRAINING)
    found = part(trace, draw(TRAINING), "")
    assert [(each.kind, each.name, each.host.base_ns) for each in found.parts] == [
        ("dataloader", "enumerate(DataLoader)#_SingleProcess.__next__", 19_000),
        ("module", "Net_0", 20_000),
        ("operators", "Operators", 3_000),
        ("backward", "Backward", 20_000),
        ("optimizer", "Optimizer.step#SGD.step", 10_000),
        ("self", "between its parts", 48_000),
    ]
    forward = part(trace, draw(TRAINING), "1")
    assert [(each.kind, each.name) for each in forward.parts][:1] == [("operator", "aten::linear")]
    assert forward.part.device.base_ns == 20_000
    assert [crumb.name for crumb in forward.crumbs] == ["step", "Net_0"]
    assert [row.name for row in forward.operators] == ["aten::linear"]
    linear = part(trace, draw(TRAINING), "1-0")
    assert [(each.kind, each.name) for each in linear.parts] == [
        ("runtime", "cudaLaunchKernel"),
        ("device", "gemm"),
        ("self", "between its parts"),
    ]
    assert linear.parts[1].base_event == [trace.strings[code] for code in trace.events.name].index("gemm")
    backward = part(trace, draw(TRAINING), "3")
    assert [(each.kind, each.name) for each in backward.parts] == [("module", "Net_0")]


def test_other_back_ends_meet_at_their_common_ancestor() -> None:
    base = [Op("aten::conv2d", 10, [Op("aten::cudnn_convolution", 20, kernel=100)]), Op("aten::relu", 10)]
    candidate = [Op("aten::conv2d", 10, [Op("aten::miopen_convolution", 30, kernel=150)]), Op("aten::relu", 10)]
    parts = {each.name: each for each in walk(record(base, 3), record(candidate, 3))}
    convolution = parts["aten::cudnn_convolution"]
    assert (convolution.status, convolution.candidate_name) == ("renamed", "aten::miopen_convolution")
    assert (convolution.host.delta_ns, convolution.device.delta_ns) == (10_000, 50_000)
    assert parts["aten::cudnn_convolution kernel"].candidate_name == "aten::miopen_convolution kernel"
    assert parts["aten::conv2d"].status == "matched"


def test_data_loaders_of_other_kinds_are_compared() -> None:
    base, candidate = (
        record([Op(f"enumerate(DataLoader)#_{kind}DataLoaderIter.__next__", 50, category="user_annotation")], 2)
        for kind in ("SingleProcess", "MultiProcessing")
    )
    first = part(base, candidate, "").parts[0]
    assert (first.kind, first.status, first.host.delta_ns) == ("dataloader", "renamed", 0)


def test_a_part_that_is_not_there_is_refused() -> None:
    trace = record(WORK, 2)
    for path in ("99", "0-99", "x", "-", "0-0-0-0-0-0"):
        with pytest.raises(NotFoundError, match="there is no part"):
            part(trace, trace, path)


def test_what_is_not_known_is_null_with_its_reason() -> None:
    lost = draw(
        """
        host  user_annotation  ProfilerStep#1     0  100
        host  cpu_op           aten::mm          10   40
        host  cuda_runtime     cudaLaunchKernel  20   10   correlation=7
        """
    )
    found = compare(lost, record(WORK, 2))
    kernel = found.waterfalls[0].bars[0]
    assert (kernel.name, kernel.base_ns, kernel.candidate_ns, kernel.verdict) == ("kernel", None, None, "unknown")
    assert "did not record the device" in found.reasons["kernel"]
    assert all(row.device_self.delta_ns is None for row in found.level.operators)
    assert "device" in found.level.reasons
    assert "profile_memory=True" in found.reasons["memory"]
    assert sum(bar.delta_ns for bar in found.waterfalls[0].bars) == found.waterfalls[0].delta_ns


def test_other_batch_sizes_are_said() -> None:
    def sized(batch: int) -> Trace:
        return draw(
            f"""
            host  cpu_op  aten::mm    10   40  Input~Dims=[[{batch},8],[8,8]]
            host  cpu_op  aten::relu  60   40  Input~Dims=[[{batch},8]]
            """.replace("~", " ")
        )

    assert [note for note in compare(sized(4), sized(8)).notes if "batch" in note] == [
        "The first dimension of inputs (often the batch) is 4 in the base and 8 in the candidate."
    ]
    assert not [note for note in compare(sized(4), sized(4)).notes if "batch" in note]
