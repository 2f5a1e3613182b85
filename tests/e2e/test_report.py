"""A report in a browser: opened from disk without a network, every view drawn from what lies in the file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.page.places import choose, expect_fits, go
from tests.report.test_report import answers, embedded_data
from tests.support.page import SCRIPT, NewPage
from tests.support.waiting import until
from torch_tb_profiler.base.format import format_duration
from torch_tb_profiler.cli import main
from torch_tb_profiler.cli.report import MAX_BYTES
from torch_tb_profiler.views import SLUGS

pytestmark = [pytest.mark.browser, pytest.mark.slow]

Write = Callable[[Path], Path]

WINDOW = {"begin", "end", "width", "tracks"}


@pytest.fixture(scope="module")
def write(tmp_path_factory: pytest.TempPathFactory) -> Write:
    """Return the report of a run, made once."""
    made: dict[Path, Path] = {}

    def write(path: Path) -> Path:
        if path not in made:
            made[path] = tmp_path_factory.mktemp("report") / "report.html"
            assert main(["report", str(path), "-o", str(made[path])]) == 0
        return made[path]

    return write


def test_every_view_is_drawn_from_disk(open_report: Callable[..., Page], write: Write, logdir: Path) -> None:
    """One page goes from view to view, another one is dark."""
    report = write(logdir / "a_training")
    assert report.stat().st_size < MAX_BYTES
    for theme, slugs in (("light", SLUGS), ("dark", ("kernels",))):
        page = open_report(report, slugs[0], theme=theme)
        expect(page.get_by_role("button", name="About this report")).to_be_visible()
        expect(page.locator("html")).to_have_attribute("data-theme", theme)
        for slug in slugs:
            go(page, {"view": slug, "run": "a_training"})
            expect(page.locator("h1").first).to_be_visible()
            assert page.get_by_text("not part of this report").count() == 0, slug
            until(partial(page.evaluate, "[...document.fonts].every(font => font.status === 'loaded')"))
            expect_fits(page)


VIEWS_BY_RUN = {
    "a_training": ("overview", "operators", "kernels", "trace", "idle", "critical_path"),
    "r_roofline": ("roofline",),
    "m_modules": ("modules", "lightning"),
    "n_memory": ("memory",),
    "o_job": ("overview", "distributed"),
}
"""Runs, and the views of which each has something to show."""


NUMBERS: dict[str, Callable[[dict[str, Any]], list[str]]] = {
    "operators": lambda payload: [format_duration(payload["rows"][0]["host_self_ns"])],
    "kernels": lambda payload: [format_duration(payload["rows"][0]["total_ns"])],
    "overview": lambda payload: [format_duration(payload["average"]["duration_ns"])] if payload["average"] else [],
}
"""Beside the headline: numbers of an answer, as the page writes them."""


@pytest.mark.parametrize("run", VIEWS_BY_RUN)
def test_the_page_says_the_numbers_of_the_answer(
    open_report: Callable[..., Page], write: Write, logdir: Path, run: str
) -> None:
    report = write(logdir / run)
    found = answers(embedded_data(report.read_text(encoding="utf-8")))
    page = open_report(report, VIEWS_BY_RUN[run][0])
    for slug in VIEWS_BY_RUN[run]:
        payload = next(body["payload"] for (path, _), (_, body) in found.items() if path == f"view/{slug}")
        # What follows the first sentence of an answer may stand elsewhere on the page.
        headline = "".join(phrase["text"] for phrase in payload["headline"]).partition(". ")[0]
        assert re.search(r"\d", headline) or slug in NUMBERS, headline
        go(page, {"view": slug, "run": run})
        expect(page.locator("h1").first).to_contain_text(headline)
        for number in NUMBERS[slug](payload) if slug in NUMBERS else ():
            expect(page.locator("body")).to_contain_text(number)


@pytest.mark.parametrize("run", VIEWS_BY_RUN)
def test_whatever_the_page_asks_at_first_is_in_the_report(
    new_page: NewPage, server: str, write: Write, logdir: Path, run: str
) -> None:
    report = embedded_data(write(logdir / run).read_text(encoding="utf-8"))
    names = {**report["recordings"][0], "run": run}
    known = {key for path, params, _ in report["entries"] for key in _keys(path, {**params, "run": run})}
    page, asked = new_page(), list[str]()
    page.on("request", lambda request: asked.append(request.url))
    for slug in VIEWS_BY_RUN[run]:
        page.goto("about:blank")
        state = f"p.pytorch_profiler.view={slug}&p.pytorch_profiler.run={run}"
        page.goto(f"{server}/data/plugin_entry.html?name=pytorch_profiler#pytorch_profiler&{state}")
        expect(page.locator(f"#page[data-shown='{slug} {run}']")).to_be_visible()
        expect(page.locator("#page [aria-busy=true]")).to_have_count(0)
        page.wait_for_load_state("networkidle")
    views = [url.partition("/pytorch_profiler/")[2] for url in asked if "/view/" in url]
    assert {url.partition("?")[0] for url in views} >= {f"view/{slug}" for slug in VIEWS_BY_RUN[run]}
    # In place of the sentence about the window in sight, a report has that about the whole recording.
    asked_of_it = [url for url in views if not url.startswith("view/trace/headline")]
    missing = [url for url in asked_of_it if not _requested_keys(url, names) & known]
    assert missing == []


def _requested_keys(url: str, names: dict[str, str]) -> set[tuple[str, str]]:
    path, _, query = url.partition("?")
    return _keys(path, {**names, **dict(parse_qsl(query))})


def _keys(path: str, params: dict[str, str]) -> set[tuple[str, str]]:
    """Return the keys under which the page of a report looks for an answer."""
    if path in ("view/trace/tile", "view/trace/blame", "view/trace/counters"):
        params = {name: value for name, value in params.items() if name not in WINDOW}
    of_run = {name: value for name, value in params.items() if name != "worker"}
    return {(path, json.dumps(each, sort_keys=True)) for each in (params, of_run)}


def test_rows_open_and_what_is_missing_is_said(
    open_report: Callable[..., Page], write: Write, logdir: Path
) -> None:
    page = open_report(write(logdir / "a_training"), "operators")
    page.get_by_role("row", name=re.compile("aten::mm")).click()
    expect(page.locator("[data-part=row-detail]")).to_contain_text("calls")
    expect(page.get_by_text(SCRIPT).first).to_be_visible()
    choose(page, "Rows", "signature")
    expect(page.locator("h1")).to_contain_text("not part of this report", ignore_case=True)
    page.get_by_role("button", name="About this report").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("torch-tb-profiler serve")
    expect(dialog.locator("li").first).to_be_visible()


def test_paper_is_white_and_has_the_whole_view(
    open_report: Callable[..., Page], write: Write, logdir: Path
) -> None:
    page = open_report(write(logdir / "a_training"), "overview", theme="dark")
    expect(page.locator("h1")).to_be_visible()
    page.emulate_media(media="print", color_scheme="dark")
    expect(page.locator("nav[aria-label=Views]")).to_be_hidden()
    style = "e => [getComputedStyle(e).overflow, getComputedStyle(e).getPropertyValue('--sf').trim()]"
    assert page.locator("#page").evaluate(style) == ["visible", "#fff"]
    whole = page.locator("#page").evaluate("e => e.scrollHeight <= e.clientHeight + 1")
    assert whole
