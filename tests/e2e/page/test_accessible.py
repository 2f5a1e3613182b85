"""Every view against the rules of axe-core, in both themes and at four widths: nothing is found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.page.places import TWO_FRAMES, VIEWS, go, start
from tests.support.waiting import PATIENCE

AXE = Path(__file__).resolve().parents[3] / "fe" / "node_modules" / "axe-core" / "axe.min.js"

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not installed: `npm ci` in fe/"),
]

FOUND = """async rules => {
  const options = rules ? { runOnly: rules } : {};
  const { violations } = await axe.run({ ...options, resultTypes: ['violations'] });
  return violations.flatMap(rule => rule.nodes.map(node => `${rule.id}: ${node.html.slice(0, 300)}`));
}"""
COLORS = ["color-contrast", "link-in-text-block"]
"""The rules whose answer another theme can change."""
LAYOUT = ["scrollable-region-focusable", "target-size", "aria-hidden-focus", "button-name", "link-name", "label"]
"""The rules whose answer another width can change: parts scroll, move, or lose their text there."""
WIDTH, HEIGHT = 1440, 900
OTHER_WIDTHS = (WIDTH // 2, 900, 2500)
"""The first is what a page of 1440 pixels has at a zoom of 200%."""

ALSO = {
    "a slice and a window": {"view": "trace", "run": "a_training", "event": "1", "area": "1200000-3450000"},
    "ranks": {"view": "trace", "run": "o_job", "ranks": "rank3,rank4"},
    "no data": {"view": "idle", "run": "n_memory"},
    "damaged": {"view": "overview", "run": "b_damaged", "worker": "rank1"},
    "unreadable": {"view": "overview", "run": "b_damaged", "worker": "rank2"},
}


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """Yield a page that may load axe (its own policy allows no script of others) and changes colors at once."""
    viewport = {"width": WIDTH, "height": HEIGHT}
    context = browser.new_context(viewport=viewport, reduced_motion="reduce", bypass_csp=True)  # type: ignore[arg-type]
    context.set_default_timeout(1000 * PATIENCE)
    yield context.new_page()
    context.close()


def test_axe_finds_nothing(page: Page, server: str) -> None:
    """One page that goes from place to place, as its user does."""
    start(page, server)
    page.add_script_tag(path=AXE)
    found = {}
    # Dark colors differ with the theme, hardly with the width: each view is looked at in one, the next in another.
    dark_widths = cycle((WIDTH, *OTHER_WIDTHS))
    for name, state in {**VIEWS, **ALSO}.items():
        go(page, state)
        if name == "unreadable":
            expect(page.locator("h1")).to_contain_text("can't be read")
        found[name] = _run_axe(page, next(dark_widths))
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Shortcuts")).to_be_visible()
    found["shortcuts"] = _run_axe(page)
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Shortcuts")).to_have_count(0)
    page.keyboard.press("r")
    expect(page.get_by_placeholder("Find a run")).to_be_focused()
    found["picker"] = _run_axe(page, widths=())  # an open list lies over what another width moves below it
    assert [f"{place}: {row}" for place, rows in found.items() for row in rows] == []


def _run_axe(page: Page, dark_width: int = WIDTH, widths: Sequence[int] = OTHER_WIDTHS) -> list[str]:
    """Return what axe finds in light, at other widths by the rules of layout, and in dark by those of color."""
    page.emulate_media(color_scheme="light")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    found: list[str] = page.evaluate(FOUND)
    for width in widths:
        _resize(page, width)
        found += [f"{width} px: {row}" for row in page.evaluate(FOUND, LAYOUT)]
    _resize(page, dark_width)
    page.emulate_media(color_scheme="dark")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    found += [f"dark, {dark_width} px: {row}" for row in page.evaluate(FOUND, COLORS)]
    _resize(page, WIDTH)
    return found


def _resize(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": HEIGHT})
    page.evaluate(TWO_FRAMES)
