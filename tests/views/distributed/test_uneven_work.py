"""Pace is compared over equal work; work that is spread unevenly is found, named and costed."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from tests.support.job_views import sentences
from tests.support.simulation.simulator import (
    Action,
    Collective,
    Delay,
    Host,
    SimulatedKernel,
    Simulation,
    Sync,
    Wait,
    ddp,
)
from tests.views.overview.test_ranks import both
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.view import Members, NoParams
from torch_tb_profiler.views._shared.job.causes import _find_differing_dimensions
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.distributed.build import build
from torch_tb_profiler.views.distributed.payload.job import DistributedPayload


def view(*delays: Delay, ranks: int = 4) -> DistributedPayload:
    return build(Simulation(ddp(ranks), delays=[*delays], jitter=0.01).run().members(), NoParams())


def test_more_rows_are_more_work_and_no_slower_device() -> None:
    payload = view(Delay("rows", 3, factor=1.3))
    assert (payload.verdict.rank, payload.verdict.cause) == (3, "more_work")
    explanation = plain(payload.explanation)
    assert "slower device" not in explanation
    assert (
        "Rank 3 has more work: " in explanation
        and "runs on [1300,1,1] there, on [1000,1,1] on the median rank." in explanation
    )


def test_a_slower_device_takes_longer_for_equal_work() -> None:
    payload = view(Delay("device", 3, factor=1.3))
    assert payload.verdict.cause == "slower_device"
    assert "more work" not in plain(payload.explanation)


def test_one_kernel_that_takes_longer_on_equal_sizes_is_no_more_work() -> None:
    """The data may be why, or its place in memory: nothing recorded says that there is more of it."""
    simulation = Simulation(ddp(4), delays=[Delay("larger", 3, factor=3)], jitter=0.01)
    job = simulation.run()
    for spans in job.spans:
        spans[:] = [replace(span, size=1.0) for span in spans]
    assert build(job.members(), NoParams()).verdict.cause == "longer_kernels"


def test_without_recorded_sizes_no_device_is_called_slower() -> None:
    members = Simulation(ddp(4), delays=[Delay("device", 3, factor=1.3)], jitter=0.01).run().members()
    payload = build(without_sizes(members), NoParams())
    assert (payload.verdict.rank, payload.verdict.cause) == (3, "longer_kernels")
    assert "slower device" not in plain(payload.explanation)


@pytest.mark.parametrize(("extra", "cause"), [(0, "longer_kernels"), (60, "more_work")])
def test_many_kernels_that_all_take_longer_are_no_more_work_unless_more_of_them_run(
    extra: int, cause: str
) -> None:
    """No single kernel is worth naming, and without sizes nothing says that a device is slower."""
    everyone = (0, 1, 2, 3)
    kernels: list[Action] = [SimulatedKernel(f"fused_{number}", 30 + number % 7) for number in range(200)]
    rest: list[Action] = [Collective("allreduce", everyone, "0", 400), Wait(), Sync()]
    programs = [[Host("forward", 50), *kernels, *rest] for _ in everyone]
    if extra:
        programs[3][1:1] = kernels[:extra]
    delays = [] if extra else [Delay("device", 3, factor=1.3)]
    members = Simulation(programs, delays=delays, jitter=0.01).run().members()
    payload = build(without_sizes(members), NoParams())
    assert (payload.verdict.rank, payload.verdict.cause) == (3, cause)
    assert "per step in kernels; the median rank" in plain(payload.explanation)


def without_sizes(members: Members[RankSummary]) -> Members[RankSummary]:
    def unsized(summary: RankSummary | None) -> RankSummary | None:
        if summary is None:
            return None
        kernels = tuple(msgspec.structs.replace(kernel, size="") for kernel in summary.kernels)
        return msgspec.structs.replace(summary, kernels=kernels)

    return Members([msgspec.structs.replace(each, result=unsized(each.result)) for each in members])


def test_a_rank_with_less_work_is_found_and_costed() -> None:
    payload, even = view(Delay("rows", 3, factor=0.6)), view()
    assert payload.verdict.kind == "uneven"
    assert (
        plain(payload.headline) == "No rank is a straggler, but work is uneven: rank 3 has less than the others."
    )
    explanation = plain(payload.explanation)
    assert "Work is uneven: rank 3 computes 0.60 × as long as the median rank" in explanation
    assert "uneven" not in plain(even.headline) + plain(even.explanation)
    saving = float(explanation.partition("would save ")[2].split()[0])
    compute = 1000 * sum(
        span.end - span.start for span in Simulation(ddp(4)).run().spans[0] if span.kind == "kernel"
    )
    assert saving * 1e3 == pytest.approx(0.1 * compute / Simulation(ddp(4)).steps, rel=0.15)


@pytest.mark.parametrize("missing", [0.6, 1.0])
def test_what_an_even_split_would_save_is_unknown_while_a_rank_is_missing(missing: float) -> None:
    """It is 0.2 or 0.1 of the work, by what the missing rank has of it: no other file shows that."""
    programs = [
        [replace(each, us=5.0) if isinstance(each, Collective) else each for each in program] for program in ddp(4)
    ]
    delays = [Delay("rows", 0, factor=missing), Delay("rows", 3, factor=0.6)]
    recorded = Simulation(programs, delays=delays, jitter=0.01, syncs=True).run()
    said = sentences(build(recorded.members([1, 2, 3]), NoParams()))
    assert said.startswith(
        "No rank found is a straggler, but work is uneven: rank 3 has less than the others. "
        "Work is uneven: rank 3 computes 0.60 × as long as the median rank"
    )
    assert "evenly" not in said
    _, overview = both(recorded, 1, [1, 2, 3])
    assert "imbalance" not in {each.id for each in overview.recommendations}
    assert "imbalance" in {each.id for each in both(recorded, 1)[1].recommendations}


@pytest.mark.parametrize(
    ("size", "other", "expected"),
    [
        ("[1300,1,1]", "[1000,1,1]", "[1300,1,1]"),
        ("[6,1,1] [[640209296],[0],[13312],[385]]", "[6,1,1] [[640649648],[0],[768],[385]]", "[13312]"),
        ("[6,1,1] [[8,8]]", "[6,1,1]", "[6,1,1] [[8,8]]"),
        (f"[1,1,1] [{'[2],' * 40}", "[1,1,1]", "[1,1,1] [[2],[2],[2],[2],[2],[…],[2],[2],[2],[2],[2],[2],[2],"),
    ],
)
def test_a_sentence_names_the_dimensions_that_differ_most(size: str, other: str, expected: str) -> None:
    found = _find_differing_dimensions(size, other)
    assert found == expected or (len(found) <= 60 and "…" in found and "…" in expected)
