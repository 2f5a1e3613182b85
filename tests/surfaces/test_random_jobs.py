"""What the judge of random jobs reads is what people see: every surface answers with the same payload."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import msgspec
import pytest

from tests.support.random_jobs.plan import draw_plan
from tests.support.random_jobs.surfaces import RANK_VIEWS, JobSurfaces
from tests.support.random_jobs.truth import JobTruth
from tests.surfaces.asking import Payload, Remembering, Surfaces, agrees, shorten
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.session import Root
from torch_tb_profiler.views import SLUGS

SEEDS = (0, 5, 227)
"""Jobs of different kinds, one with a late rank that loads data."""

SHOWN = [slug for slug in ("distributed", "critical_path/ranks", *RANK_VIEWS) if slug != "roofline"]
"""What people see: the simulation records no shapes, without which there is no roofline."""

ASK_BY_SURFACE: dict[str, Callable[[Surfaces, str, str], Payload]] = {
    "HTTP": Surfaces.http,
    "command line": Surfaces.command_line,
    "Python": Surfaces.python,
    "MCP": Surfaces.agent,
    "report": Surfaces.report,
}


@pytest.fixture(scope="module", params=SEEDS)
def job(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[JobSurfaces, Surfaces]]:
    """Return the answers that the judge reads, and the surfaces over the files of the same job."""
    plan = draw_plan(request.param)
    truth = JobTruth(plan, plan.simulation.run())
    folder = tmp_path_factory.mktemp("log")
    (folder / "job").mkdir()
    for rank in plan.present:
        name = f"{JobSurfaces.worker(truth, rank)}.pt.trace.json"
        (folder / "job" / name).write_bytes(truth.job.file(rank, ahead=plan.ahead.get(rank, 0.0)))
    with Remembering([Root(str(folder))], Settings(executor="serial", cache_bytes=0)) as session:
        session.scan()
        yield JobSurfaces(truth), Surfaces(session, folder)


def answers_judged(judged: JobSurfaces, slug: str) -> Payload:
    return json.loads(msgspec.json.encode(judged.answer(slug, judged.workers[0])))


def test_the_session_answers_what_is_judged(job: tuple[JobSurfaces, Surfaces]) -> None:
    judged, surfaces = job
    for slug in SHOWN:
        assert surfaces.answered(slug, "job") == answers_judged(judged, slug), slug


@pytest.mark.parametrize("surface", ASK_BY_SURFACE)
def test_every_surface_answers_what_is_judged(job: tuple[JobSurfaces, Surfaces], surface: str) -> None:
    judged, surfaces = job
    for slug in sorted({*SHOWN} & {*SLUGS}):
        found, wanted = ASK_BY_SURFACE[surface](surfaces, slug, "job"), answers_judged(judged, slug)
        same = agrees(found, shorten(wanted)) if surface == "MCP" else found == wanted
        assert same and not isinstance(found, str), slug
