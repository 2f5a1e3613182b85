"""What the distributed view answers for drawn jobs."""

from __future__ import annotations

from collections.abc import Sequence

from tests.support.jobs import Job
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.distributed.build import build
from torch_tb_profiler.views.distributed.payload.job import Distributed


def view(job: Job, only: Sequence[int] | None = None) -> Distributed:
    """The payload of the job, or of some of its ranks."""
    return build(job.members(only), NoParams())


def kinds(payload: Distributed) -> list[str]:
    """The problems that it reports."""
    return [problem.kind for problem in payload.problems]


def sentences(payload: Distributed) -> str:
    """Headline and explanation as plain text."""
    return f"{plain(payload.headline)} {plain(payload.explanation)}".strip()
