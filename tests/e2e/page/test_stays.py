"""What is drawn stays where it is while the rest of the answer arrives."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from tests.e2e.page.places import TWO_FRAMES, go, start
from tests.support.page import Open, Tab, until_heard
from tests.support.servers.tensorboard import read_json
from torch_tb_profiler.views import SLUGS

pytestmark = [pytest.mark.browser, pytest.mark.slow]

JOB = "simulated_8_h100_late_rank"

WITH_LATE_ANSWERS = ("overview", "trace", "idle", "critical_path", "distributed")
"""Views that draw before everything is computed."""

ONLY_TAB = {"hang_gloo": ("hangs",), "out_of_memory_h200": ("memory",), "simulated_out_of_memory": ("memory",)}
"""The tab of each sample without a trace: flight recorders or snapshots alone have one."""

MOST_SHIFT = 0.005
"""From this on, the layout shift of a view from its first paint to its last answer no longer rounds to 0.00."""

# Notes what moves, and holds back all answers of views but the first one of a tab.
WATCH = """
window.moved = [];
new PerformanceObserver(list => {
    for (const entry of list.getEntries()) {
        const sources = entry.sources.map(({ node }) => (node?.textContent ?? '').slice(0, 60));
        if (!entry.hadRecentInput) window.moved.push([entry.value, sources]);
    }
}).observe({ type: 'layout-shift', buffered: true });
window.waiting = [];
window.first = null;
const ask = window.fetch;
window.fetch = async (...request) => {
    const answer = await ask(...request);
    const slug = /view\\/([^?]+)/.exec(String(request[0]?.url ?? request[0]))?.[1];
    if (slug && window.first && !window.first.includes(slug)) {
        await new Promise(release => window.waiting.push(release));
    }
    return answer;
};
"""

# Notes in each frame where the parts of the job's page in sight begin, from its first answer on.
WATCH_PARTS = """
window.tops = [];
const note = () => {
    const parts = "#page[data-shown='distributed u_ranks']:has([data-part=map-tools]) section";
    document.querySelectorAll(parts).forEach((part, i) => {
        const top = Math.round(part.getBoundingClientRect().top);
        if (top < innerHeight) (window.tops[i] ??= new Set()).add(top);
    });
    requestAnimationFrame(note);
};
note();
"""

RELEASE = "() => { window.first = null; return window.waiting.splice(-1).map(release => release()).length; }"
"""Lets the last of the answers held back through, and returns whether there was one."""

_EMPTY = """story => {
    const end = story.lastElementChild.getBoundingClientRect().bottom;
    return Math.round(story.getBoundingClientRect().bottom - end);
}"""

_SPARE = """story => [...story.querySelectorAll('[data-part=advice] ol > li')].map(row => {
    const bottom = Math.max(...[...row.children].map(part => part.getBoundingClientRect().bottom));
    return Math.round(row.getBoundingClientRect().bottom - bottom);
})"""

MOST_SPARE = 40
"""Pixels below what a row says, at most: rows share the height that was reserved for others."""


def test_nothing_moves_from_the_first_paint_to_the_last_answer(
    unused_page: Page, samples: Path, sample_server: str
) -> None:
    """On any tab that a sample has something for, and once on each for which a sample has nothing.

    Later answers arrive one after the other, the last that was asked for first.
    """
    page = unused_page
    page.add_init_script(WATCH)
    start(page, sample_server)
    page.evaluate("document.fonts.ready.then(() => 0)")
    runs = [run.name for run in sorted(samples.iterdir()) if run.is_dir()]
    moved, without = {}, set[str]()
    for run in runs:
        first, *others = ONLY_TAB.get(run, SLUGS)
        moved[1440, run, first] = collect_shifts(page, run, first)
        silent = tabs_without_data(sample_server, run) if others else set()
        for slug in others:
            if slug not in silent & without:
                moved[1440, run, slug] = collect_shifts(page, run, slug)
        without |= silent
    assert {slug for _, _, slug in moved} == {*SLUGS}
    for width in (900, 2500):
        page.set_viewport_size({"width": width, "height": 900})
        go(page, {"view": "operators", "run": runs[0]})
        moved |= {(width, JOB, slug): collect_shifts(page, JOB, slug) for slug in WITH_LATE_ANSWERS}
    shifts = {place: sum(value for value, _ in entries) for place, entries in moved.items()}
    assert {place: moved[place] for place, shift in shifts.items() if shift >= MOST_SHIFT} == {}


@pytest.mark.parametrize("width", [900, 1440])
def test_nothing_moves_in_a_job_of_more_ranks_than_fit_on_a_page(
    unused_page: Page, server: str, width: int
) -> None:
    """While its ranks are read, words and figures change where they are; once all have been, nothing moves."""
    page = unused_page
    page.set_viewport_size({"width": width, "height": 900})
    page.add_init_script(WATCH)
    start(page, server)
    page.evaluate("document.fonts.ready.then(() => 0)")
    page.evaluate(WATCH_PARTS)
    collect_shifts(page, "u_ranks", "distributed")
    expect(page.locator("#page progress")).to_have_count(0)
    page.evaluate(TWO_FRAMES)
    tops = page.evaluate("window.tops.map(each => [...each])")
    assert len(tops) >= 2
    assert [each for each in tops if max(each) > min(each)] == []
    go(page, {"view": "operators", "run": "a_training"})
    moved = collect_shifts(page, "u_ranks", "distributed")
    assert page.get_by_role("figure", name="Lateness by rank and step").is_visible()
    assert sum(value for value, _ in moved) < MOST_SHIFT, moved


def tabs_without_data(server: str, run: str) -> set[str]:
    """Return the tabs that have nothing of a run which has been read."""
    views = read_json(f"{server}/data/plugin/pytorch_profiler/views?run={run}")["views"]
    assert all(view["available"] is not None for view in views)
    return {view["slug"] for view in views if not view["available"]}


def collect_shifts(page: Page, run: str, slug: str) -> list[tuple[float, list[str]]]:
    """Open a tab and return its layout shifts, with the text of what moved."""
    first = ["overview/preview"] if slug == "overview" else [slug]
    page.evaluate("first => { window.moved = []; window.first = first; }", first)
    parts = (f"p.pytorch_profiler.run={run}", f"p.pytorch_profiler.view={slug}")
    page.evaluate("hash => { location.hash = hash }", "&".join(["pytorch_profiler", *parts]))
    expect(page.locator(f"#page[data-shown='{slug} {run}']")).to_be_visible()
    expect(page.locator("#page [data-part=answer]")).to_be_visible()
    page.evaluate(TWO_FRAMES)
    while page.evaluate(RELEASE):
        page.evaluate(TWO_FRAMES)
    go(page, {"view": slug, "run": run})
    page.evaluate(TWO_FRAMES)
    moved: list[tuple[float, list[str]]] = page.evaluate("window.moved")
    return moved


def test_the_frame_of_a_tab_is_painted_before_any_answer(unused_page: Page, server: str) -> None:
    """Its title, all tabs, and what is being done come from the static page; no answer moves any of it."""
    page = unused_page
    page.add_init_script(WATCH)
    held: list[Route] = []
    answers = re.compile(r"/(runs|workers|views|view/[^?]*)(\?|$)")
    page.route(answers, lambda route: held.append(route))
    page.goto(
        f"{server}/data/plugin_entry.html?name=pytorch_profiler#pytorch_profiler&p.pytorch_profiler.view=kernels"
    )
    expect(page.get_by_role("heading", level=1)).to_have_text("Kernels")
    expect(page.locator("nav [aria-current=page]")).to_have_text("Kernels")
    expect(page.get_by_role("status")).to_contain_text("Looking for traces")
    until_heard(page, lambda: held)
    before = page.locator("nav").inner_text()
    for route in held:
        route.continue_()
    page.unroute(answers)
    expect(page.locator("[data-part=table-body] [role=row]").first).to_be_visible()
    expect(page.locator("#page [aria-busy=true]")).to_have_count(0)
    after = page.locator("nav").inner_text()
    assert [line for line in after.split("\n") if line in before.split("\n")] == before.split("\n")
    assert sum(value for value, _ in page.evaluate("window.moved")) < MOST_SHIFT


@pytest.mark.parametrize(("run", "width"), [("w_busy", 900), ("o_job", 1440), ("a_training", 1920)])
def test_the_late_answer_leaves_no_hole_in_the_overview(open_page: Open, run: str, width: int) -> None:
    """The replay's answer and that of the ranks are held back until the page is drawn."""
    page, frame = open_page(width=width, view="operators", run=run)
    expect(frame.locator("[data-part=table-body]").first).to_be_visible()
    held: list[Route] = []
    late = re.compile(r"view/overview(/ranks)?(\?|$)")
    page.route(late, lambda route: held.append(route))
    frame.get_by_role("button", name="Overview", exact=True).click()
    advice = frame.get_by_role("region", name="What to change first")
    expect(advice).to_have_attribute("aria-busy", "true")
    expect(frame.get_by_role("heading", name="Achieved vs. peak")).to_be_visible()
    before = measure_top(frame)
    until_heard(page, lambda: held)
    for route in held:
        route.continue_()
    page.unroute(late)
    story = frame.locator("[data-part=story]").last
    expect(story.locator("[data-part=advice]")).not_to_contain_text(re.compile("Replaying|Comparing"))
    expect(frame.get_by_text("working it out…")).to_have_count(0)
    assert measure_top(frame) == before
    assert story.evaluate(_EMPTY) == 0
    assert max(story.evaluate(_SPARE), default=0) <= MOST_SPARE


def measure_top(frame: Tab) -> float:
    """Return where the panel below the advice is once two frames have been drawn."""
    frame.locator("html").evaluate(TWO_FRAMES)
    box = frame.get_by_role("heading", name="Breakdown").bounding_box()
    assert box
    return box["y"]
