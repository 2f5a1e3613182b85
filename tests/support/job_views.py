"""Payloads of the Distributed tab for simulated jobs."""

from __future__ import annotations

from collections.abc import Sequence

from tests.support.jobs import Job
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.distributed.build import build
from torch_tb_profiler.views.distributed.payload.job import DistributedPayload


def view(job: Job, only: Sequence[int] | None = None) -> DistributedPayload:
    """Return the payload of the job, or of some of its ranks."""
    return build(job.members(only), NoParams())


def kinds(payload: DistributedPayload) -> list[str]:
    """Return the kinds of the problems that it reports."""
    return [problem.kind for problem in payload.problems]


def sentences(payload: DistributedPayload) -> str:
    """Return headline and explanation as plain text."""
    return f"{plain(payload.headline)} {plain(payload.explanation)}".strip()
