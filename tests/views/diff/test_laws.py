"""Properties that hold for any two recordings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.diffs import compare, noise, part, values, verdicts, walk
from tests.support.recordings import Op, record
from torch_tb_profiler.views._shared.text import plain


@st.composite
def branches(draw: Any) -> list[Op]:
    """Generate five operators with random ones inside; names tell position and may repeat within a branch."""

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
    answer = compare(record(ops, steps, noise(1)), record(ops, steps, noise(1)))
    payload = msgspec.to_builtins(answer)
    deltas = list(values(payload, "delta_"))
    assert len(deltas) > 100
    assert all(value in (0, None) for _, value in deltas), deltas
    assert verdicts(answer) <= {"equal", "unknown"}
    assert {status for _, status in values(payload, "status")} == {"matched"}


def change_tree(ops: Sequence[Op]) -> list[Op]:
    """Slow one operator by 400 us, rename one, add one and remove one, each in a branch of its own."""
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
def test_exactly_the_planted_changes_are_reported(ops: list[Op], seed: int) -> None:
    base, candidate = record(ops, 6, noise(seed)), record(change_tree(ops), 9, noise(seed + 1))
    answer = compare(base, candidate)
    rows = {row.name: row for row in answer.level.operators}
    real = {
        name: row.host_self.verdict for name, row in rows.items() if row.host_self.verdict in ("slower", "faster")
    }
    assert real == {"aten::leaf0": "slower", "aten::new": "slower", "aten::leaf3": "faster"}
    assert rows["aten::leaf0"].host_self.delta_ns == pytest.approx(400_000, rel=0.02)
    assert rows["aten::new"].host_self.delta_ns == pytest.approx(400_000, rel=0.02)
    assert rows["aten::leaf3"].host_self.delta_ns == pytest.approx(-50_000, rel=0.02)
    statuses = {name: row.status for name, row in rows.items() if row.status != "matched"}
    assert statuses == {"aten::new": "added", "aten::leaf3": "removed", "aten::leaf1": "renamed"}
    assert rows["aten::leaf1"].candidate_name == "aten::other"
    kernels = {row.name: row.status for row in answer.kernels if row.status != "matched"}
    assert kernels == {"aten::leaf3 kernel": "removed", "aten::leaf1 kernel": "renamed"}
    assert [row.total.verdict for row in answer.kernels if row.name == "aten::leaf3 kernel"] == ["faster"]
    parts = {each.name: each.status for each in walk(base, candidate) if each.status != "matched"}
    launch = {"cudaLaunchKernel": "removed"}  # of the operator that was removed
    assert parts in ({**statuses, **kernels}, {**statuses, **kernels, **launch})
    assert answer.step.verdict == "slower"
    assert any("6 steps in the base, 9 in the candidate" in plain(note) for note in answer.notes)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(branches(), branches(), st.integers(1, 4), st.integers(1, 4))
def test_parts_and_bars_sum_to_the_step(ops: list[Op], other: list[Op], first: int, second: int) -> None:
    base, candidate = record(ops, first, noise(3)), record(other, second, noise(4))
    answer = compare(base, candidate)
    for fall in answer.waterfalls:
        assert sum(bar.delta_ns for bar in fall.bars) == fall.delta_ns == fall.bars[-1].delta_accumulated_ns
        assert sum(bar.base_ns or 0 for bar in fall.bars) == fall.base_ns == answer.step.base_ns
        assert sum(bar.candidate_ns or 0 for bar in fall.bars) == fall.candidate_ns
        assert fall.delta_ns == answer.step.delta_ns
    last = answer.level.parts[-1]
    host = sum(each.host.delta_ns or 0 for each in answer.level.parts)
    assert last.delta_accumulated_ns == pytest.approx(host)
    assert host == pytest.approx(answer.step.delta_ns, abs=1)
    pending = [each for each in answer.level.parts if each.parts]
    while pending:
        above = pending.pop()
        level = part(base, candidate, above.path)
        for metric in ("host", "device"):
            total = getattr(above, metric)
            inside = [getattr(each, metric) for each in level.parts]
            for side in ("base_ns", "candidate_ns", "delta_ns"):
                assert sum(getattr(each, side) for each in inside) == pytest.approx(getattr(total, side), abs=1)
        pending += [each for each in level.parts if each.parts]


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
            for row in answer.level.operators
        }
        for answer in (there, back)
    ]
    assert statuses[0] == {name: flip.get(status, status) for name, status in statuses[1].items()}
