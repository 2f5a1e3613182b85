"""What advises on a drawn trace, and steps to draw it in."""

from __future__ import annotations

from typing import Any

from torch_tb_profiler.analyses.overview.advice import advice
from torch_tb_profiler.analyses.overview.finding import Advice
from torch_tb_profiler.model.trace import Trace

BACKWARD = "host2 cpu_op autograd::engine::evaluate_function:~AddmmBackward0 1 1"


def get_advice(trace: Trace, id: str) -> Advice | None:
    """Return the advice of a rule, None if it gives none."""
    return next((each for each in advice(trace) if each.finding.id == id), None)


def ids(trace: Trace) -> list[str]:
    return [each.finding.id for each in advice(trace)]


def measure_share(found: Advice) -> float:
    """Return the share of today's step that the advice removes."""
    assert found.gain is not None and found.gain_share is not None
    return found.gain_share * found.gain.measured_ns / found.gain.ns


def share(trace: Trace, id: str) -> float | None:
    """Return what a rule measures as a share of the step, None without this advice."""
    found = get_advice(trace, id)
    return None if found is None else round(measure_share(found), 6)


def steps(count: int, length: int = 10_000) -> str:
    return "\n".join(f"host user_annotation ProfilerStep#{i} {length * i} {length}" for i in range(count))


def work(start: int, duration: int, launch: int, number: int, name: str = "k", call: int = 5) -> str:
    """Return a kernel, and the call that launched it."""
    return (
        f"host cuda_runtime cudaLaunchKernel {launch} {call} correlation={number}\n"
        f"gpu0 kernel {name} {start} {duration} correlation={number} stream=7"
    )


def card(**properties: Any) -> list[dict[str, Any]]:
    return [{"id": 0, "name": "Card", **properties}]
