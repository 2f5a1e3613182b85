"""What is drawn stays where it is while the rest of the answer arrives."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Route, expect

from tests.support.page import Open, Tab
from tests.support.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.slow]

_WATCH = """() => {
    window.moved = [];
    new PerformanceObserver(list => {
        for (const entry of list.getEntries()) {
            const below = document.querySelector('[data-part=story]').getBoundingClientRect().bottom;
            const sources = entry.sources.filter(
                source => source.currentRect.top >= below - 1 && source.currentRect.height
            );
            window.moved.push(...sources.map(source => (source.node?.textContent ?? '').slice(0, 60)));
        }
    }).observe({ type: 'layout-shift' });
}"""

_BOXES = """() => Object.fromEntries(
    [...document.querySelectorAll('#page h2')].map(heading => {
        const { x, y } = heading.getBoundingClientRect();
        return [heading.textContent, [x, y]];
    }))"""

_EMPTY = """story => {
    const end = story.lastElementChild.getBoundingClientRect().bottom;
    return Math.round(story.getBoundingClientRect().bottom - end);
}"""

_GAPS = """story => [...story.querySelectorAll('[data-part=advice] ol > li')].map(card => {
    const parts = [...card.children].map(part => part.getBoundingClientRect());
    return Math.round(Math.max(...parts.slice(1).map((part, i) => part.top - parts[i].bottom)));
})"""

MOST_SPARE = 60
"""Pixels between what a card says: one that is alone has room to spare, as it is wider than was kept for it."""


@pytest.mark.parametrize("width", [900, 1440, 1920])
@pytest.mark.parametrize("run", ["a_training", "w_busy", "o_job"])
def test_the_late_answer_moves_nothing_of_the_overview(open_page: Open, run: str, width: int) -> None:
    """The replay's answer and that of the ranks are held back until the page is drawn."""
    page, frame = open_page(width=width, view="operators", run=run)
    expect(frame.locator("[data-part=table-body]").first).to_be_visible()
    held: list[Route] = []
    late = re.compile(r"view/overview(/ranks)?(\?|$)")
    page.route(late, lambda route: held.append(route))
    frame.get_by_role("button", name="Overview", exact=True).click()
    story = frame.locator("[data-part=story]")
    expect(story.get_by_role("region", name="What to change first")).to_have_attribute("aria-busy", "true")
    expect(frame.get_by_role("heading", name="Achieved vs. peak")).to_be_visible()
    until(lambda: frame.locator("html").evaluate("() => document.fonts.status"), lambda said: said == "loaded")
    wait_for_frames(frame)
    assert held
    frame.locator("html").evaluate(_WATCH)
    before = frame.locator("html").evaluate(_BOXES)
    for route in held:
        route.continue_()
    page.unroute(late)
    expect(story.locator("[data-part=advice]")).not_to_contain_text(re.compile("Replaying|Comparing"))
    expect(frame.get_by_text("working it out…")).to_have_count(0)
    wait_for_frames(frame)
    after = frame.locator("html").evaluate(_BOXES)
    below = [
        name
        for name in before
        if name in after and not story.get_by_role("heading", name=name, exact=True).count()
    ]
    assert {"Breakdown", "Achieved vs. peak"} <= set(below)
    assert {name: after[name] for name in below} == {name: before[name] for name in below}
    assert frame.locator("html").evaluate("() => window.moved") == []
    assert story.evaluate(_EMPTY) == 0  # nor does it leave a hole
    assert max(story.evaluate(_GAPS), default=0) <= MOST_SPARE


def wait_for_frames(frame: Tab) -> None:
    """Wait until two frames have been drawn."""
    frame.locator("html").evaluate(
        "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))"
    )
