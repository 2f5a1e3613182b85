"""What removed waits save at most without a replay, against the same job simulated without them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.simulation.simulator import Action, Copy, Host, SimulatedKernel, Simulation, Sync
from torch_tb_profiler.analyses.overview.advice import measured_advice

LOADING = Host("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 3_000, load=True)
STEPS = 6

SYNCS: list[Action] = [LOADING, Host("augment", 500), SimulatedKernel("gemm", 8_000), Sync()]
COPIES: list[Action] = [
    SimulatedKernel("gemm", 3_000),
    Copy(50),
    Host("tokenize", 200),
    SimulatedKernel("norm", 50),
    Copy(50),
    Host("report", 1_000),
    SimulatedKernel("gemm", 2_000),
    Sync(),
]


def _without_waits(rule: str, action: Action) -> list[Action]:
    if rule == "synchronization":
        return [] if isinstance(action, Sync) else [action]
    return [SimulatedKernel("copy", action.us)] if isinstance(action, Copy) else [action]


@pytest.mark.parametrize(("rule", "program"), [("synchronization", SYNCS), ("blocking_copies", COPIES)])
def test_removed_waits_save_no_more_than_is_said(rule: str, program: list[Action]) -> None:
    """Data is loaded while the device works then; and of what one wait took, later gaps have what is left."""
    job = Simulation([program], steps=STEPS, syncs=True)
    found = next(each for each in measured_advice(job.run().trace(0)) if each.finding.id == rule)
    free = replace(job, programs=[[each for action in program for each in _without_waits(rule, action)]])
    saved = 1_000 * (job.run().end - free.run().end) / STEPS
    assert found.gain is not None and found.gain.basis == "share"
    assert saved <= found.gain.ns <= 1.25 * saved
    assert found.gain.measured_ns < 0.5 * saved


def test_waits_after_which_the_device_hardly_idles_are_no_advice_without_a_replay() -> None:
    """What they save at most is time in which data is loaded, and may be none of theirs."""
    program: list[Action] = [LOADING, SimulatedKernel("gemm", 8_000), Sync()]
    trace = Simulation([program], steps=STEPS, syncs=True).run().trace(0)
    assert [each.finding.id for each in measured_advice(trace)] == ["data_loading"]
