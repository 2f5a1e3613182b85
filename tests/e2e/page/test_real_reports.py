"""Reports of real runs in a browser: opened from disk without a network, every view says what its answer says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.corpus import real_traces
from tests.e2e.page.places import expect_fits
from tests.e2e.test_report import NUMBERS
from tests.report.test_report import answers, embedded_data
from tests.surfaces.asking import recall_traces
from torch_tb_profiler.cli import main
from torch_tb_profiler.cli.report import MAX_BYTES
from torch_tb_profiler.views import SLUGS

pytestmark = [pytest.mark.browser, *real_traces.MARKS]

RUNS = (
    "composer_merged_dev",
    "hta_mtia_inference",
    "malformed_rank1_broken_dev",
    "malformed_truncated_dev",
    "param_dlrm_8rank_v100",
    "part_a100_bs128_3span",
    "tl_h100_qwen15",
)
"""Of several generations, producers and devices; of one rank and of several; damaged."""


@pytest.mark.parametrize("run", RUNS)
def test_every_view_of_a_real_run_is_drawn_from_disk(
    open_report: Callable[..., Page], corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: str
) -> None:
    monkeypatch.setattr("torch_tb_profiler.session.jobs.load_file", recall_traces(corpus))
    monkeypatch.setenv("TORCH_PROFILER_CACHE_BYTES", "0")
    monkeypatch.setenv("TORCH_PROFILER_SMALL_FILE_BYTES", str(1 << 50))
    report = tmp_path / "report.html"
    assert main(["report", str(corpus / "traces" / run), "-o", str(report)]) == 0
    assert report.stat().st_size <= MAX_BYTES
    found = report_answers(embedded_data(report.read_text("utf-8")))
    page = open_report(report, SLUGS[0])
    address = page.url.partition("#")[0]
    for slug in SLUGS:
        page.goto(f"{address}#pytorch_profiler&p.pytorch_profiler.view={slug}")
        expect(page.locator("h1").first).to_contain_text(headline_text(found[slug]))
        if slug in NUMBERS and "payload" in found[slug]:
            for number in NUMBERS[slug](found[slug]["payload"]):
                expect(page.locator("body")).to_contain_text(number)
        expect(page.get_by_text("not part of this report"), slug).to_have_count(0)
        expect_fits(page)


def report_answers(report: dict[str, Any]) -> dict[str, Any]:
    """Return view -> what the report holds of it as the page opens it: of several answers, the first."""
    found: dict[str, Any] = {}
    for (path, _), (_, body) in answers(report).items():
        kind, _, slug = path.partition("/")
        if kind == "view":
            found.setdefault(slug, body)
    if communicates(found["overview"].get("payload")):
        found["overview"] = found["overview/ranks"]
        if "payload" in found.get("critical_path/beside", {}):
            found["critical_path"] = found["critical_path/beside"]
    return found


def communicates(overview: dict[str, Any] | None) -> bool:
    """Return whether the page asks what the other ranks say to it, too."""
    if overview is None or overview["average"] is None:
        return False
    size, communication = (
        overview["configuration"]["world_size"],
        overview["average"]["categories"]["communication"],
    )
    return bool((size or 1) > 1 or (communication or 0) > 0)


def headline_text(body: dict[str, Any]) -> str:
    """Return the first sentence of an answer, or why there is none, as the page writes them."""
    if "error" in body:
        message = body["error"]["message"].replace("`", "")
        return str(message[:1].upper() + message[1:])
    return "".join(each["text"] for each in body["payload"]["headline"]).partition(". ")[0]
