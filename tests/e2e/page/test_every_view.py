"""Every view on one page that goes from place to place, as its user does: axe's rules, widths, and what is said.

axe-core looks in both themes and at four widths. To go to a view costs as much as to look at it once it is drawn,
so each is looked at for all of this while the page is there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.evidence.clicks import MOST_FRAMES
from tests.e2e.page.places import TWO_FRAMES, VIEWS, go, start
from tests.support.page import NewPage
from tests.support.waiting import PATIENCE

pytestmark = [pytest.mark.browser, pytest.mark.slow]

AXE = Path(__file__).resolve().parents[3] / "fe" / "node_modules" / "axe-core" / "axe.min.js"

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

WIDTHS = (320, 900, 1440, 1920, 2560)
"""Where nothing may be cut off; 320 px are a window of 1,280 px at a zoom of 400%."""

LAPTOP_HEIGHT = 700
"""Of the page in the window of a laptop, below TensorBoard's header."""

RULED_WIDTHS = (WIDTH // 2, 900, 2560)
"""Where axe looks at the layout, too; the first is what a page of 1440 pixels has at a zoom of 200%."""

OVER = """async ([wide, frames]) => {
  const over = (element, name) => element.scrollWidth > element.clientWidth + 1 ? [name] : [];
  const page = document.getElementById('page');
  const PANEL = '.panel, [data-part=table]';
  const find = () => {
    const panels = [...page.querySelectorAll(PANEL)].filter(each => !each.parentElement.closest(PANEL));
    const boxes = panels.map(panel => panel.getBoundingClientRect());
    const covers = (a, b) =>
      a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
    const covered = panels.filter((_, i) => boxes.some((box, other) => other !== i && covers(box, boxes[i])));
    const tables = wide ? [...page.querySelectorAll('[role=grid], [role=treegrid], table')] : [];
    return [
      ...over(document.documentElement, 'document'),
      ...over(page, 'page'),
      ...covered.map(panel => `covered: ${panel.getAttribute('aria-label') ?? panel.textContent.slice(0, 40)}`),
      ...tables.flatMap(table => {
        const frame = table.closest('.scroll') ?? table.parentElement;
        return over(frame, `table ${table.getAttribute('aria-label')}`);
      }),
    ];
  };
  let found = find();
  for (; found.length > 0 && frames > 0; frames--) {
    await new Promise(requestAnimationFrame);
    found = find();
  }
  return found;
}"""
"""What is cut off or covered; a chart is drawn anew for a new width a few frames later."""

READ_PAGE = """() => {
  const shown = document.querySelector('#page').innerText;
  const sentences = [...document.querySelectorAll('#page p, #page h1')]
    .filter(e => !e.closest('table, [role=grid], [role=row]') && e.checkVisibility())
    .flatMap(e => e.innerText.replaceAll('\\n', ' ').split(/(?<=[.?!]) (?=[A-Z])/));
  return [shown, sentences];
}"""
"""All text in sight of a view, and its sentences outside of tables."""

MANY = (
    "slices|names|steps|calls|kernels|ranks|launches|operators|collectives|blocks|gaps|runs|workers|files|events|rows|"
    "issues|copies|nodes|groups|others"
)

UNLIKE = {
    "µs": r"\d us\b",
    "the minus sign": r"(?:^|[\s(])-\d",
    "8%": r"\d\s%",
    "a rank is no measure": r"(?<!other )\b[Rr]ank \d+\.\d",
    "one of many": rf"(?:^|[^\d.,])1 (?:{MANY})\b",
    "GPU 0": r"\bGPU\d|\bDevice \d",
}
"""How something is written, and what is none of it."""

WITHOUT_DATA = {"view": "idle", "run": "n_memory"}

ALSO = {
    "a slice and a window": {"view": "trace", "run": "a_training", "event": "1", "area": "1200000-3450000"},
    "ranks": {"view": "trace", "run": "o_job", "ranks": "rank3,rank4"},
    "damaged": {"view": "overview", "run": "b_damaged", "worker": "rank1"},
    "unreadable": {"view": "overview", "run": "b_damaged", "worker": "rank2"},
}
"""Other states, at which axe alone looks."""


@dataclass
class Walk:
    """What was found at each place.

    violations  what axe found
    cut         what a width cuts off or lets cover something
    said        all text in sight, and the sentences outside of tables
    """

    violations: dict[str, list[str]] = field(default_factory=dict)
    cut: dict[str, list[str]] = field(default_factory=dict)
    texts: dict[str, tuple[str, list[str]]] = field(default_factory=dict)


@pytest.fixture(scope="module")
def walked_page(browser: Browser) -> Iterator[Page]:
    """Yield a page that may load axe (its own policy allows no script of others) and changes colors at once."""
    viewport = {"width": WIDTH, "height": HEIGHT}
    context = browser.new_context(viewport=viewport, reduced_motion="reduce", bypass_csp=True)  # type: ignore[arg-type]
    context.set_default_timeout(1000 * PATIENCE)
    yield context.new_page()
    context.close()


@pytest.fixture(scope="module")
def walk(walked_page: Page, server: str) -> Walk:
    """Return what one page finds that goes to all views, then to other states of some."""
    page, walk = walked_page, Walk()
    start(page, server)
    if AXE.is_file():
        page.add_script_tag(path=AXE)
    # Dark colors differ with the theme, hardly with the width: each view is looked at in one, the next in another.
    dark_widths = cycle((WIDTH, *RULED_WIDTHS))
    for name, state in {**VIEWS, "no data": WITHOUT_DATA}.items():
        go(page, state)
        walk.texts[name] = page.evaluate(READ_PAGE)
        walk.violations[name] = _find_violations(page)
        for width in sorted({*WIDTHS, *RULED_WIDTHS}):
            _resize(page, width, LAPTOP_HEIGHT)
            if width in WIDTHS:
                walk.cut[f"{name}, {width} px"] = page.evaluate(OVER, [width >= WIDTH, MOST_FRAMES])
            if width in RULED_WIDTHS:
                walk.violations[f"{name}, {width} px"] = _find_violations(page, LAYOUT)
        walk.violations[f"{name}, dark"] = _find_violations_in_dark(page, next(dark_widths))
    for name, state in ALSO.items():
        go(page, state)
        if name == "unreadable":
            expect(page.locator("h1")).to_contain_text("can't be read")
        walk.violations[name] = _find_violations(page)
        for width in RULED_WIDTHS:
            _resize(page, width)
            walk.violations[f"{name}, {width} px"] = _find_violations(page, LAYOUT)
        walk.violations[f"{name}, dark"] = _find_violations_in_dark(page, next(dark_widths))
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Shortcuts")).to_be_visible()
    walk.violations["shortcuts"] = _find_violations(page)
    for width in RULED_WIDTHS:
        _resize(page, width)
        walk.violations[f"shortcuts, {width} px"] = _find_violations(page, LAYOUT)
    walk.violations["shortcuts, dark"] = _find_violations_in_dark(page, WIDTH)
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Shortcuts")).to_have_count(0)
    page.keyboard.press("r")
    expect(page.get_by_placeholder("Find a run")).to_be_focused()
    # An open list lies over what another width moves below it.
    walk.violations["picker"] = _find_violations(page)
    walk.violations["picker, dark"] = _find_violations_in_dark(page, WIDTH)
    return walk


def _find_violations(page: Page, rules: list[str] | None = None) -> list[str]:
    """Return what axe finds; nothing if it is not installed, and then the test of it is skipped."""
    found: list[str] = page.evaluate(FOUND, rules) if AXE.is_file() else []
    return found


def _find_violations_in_dark(page: Page, width: int) -> list[str]:
    """Return what axe finds by the rules of color; the page is light again then, and of its first size."""
    _resize(page, width)
    page.emulate_media(color_scheme="dark")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    found = _find_violations(page, COLORS)
    _resize(page, WIDTH)
    page.emulate_media(color_scheme="light")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    return found


def _resize(page: Page, width: int, height: int = HEIGHT) -> None:
    page.set_viewport_size({"width": width, "height": height})
    page.evaluate(TWO_FRAMES)


@pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not installed: `npm ci` in fe/")
def test_axe_finds_nothing(walk: Walk) -> None:
    assert {*VIEWS, *ALSO, "no data", "shortcuts", "picker"} <= walk.violations.keys()
    assert [f"{place}: {row}" for place, rows in walk.violations.items() for row in rows] == []


def test_no_width_cuts_a_view_off(walk: Walk) -> None:
    """From 1440 on the tables fit, too; narrower ones are scrolled by themselves."""
    assert {f"{view}, {width} px" for view in VIEWS for width in WIDTHS} <= walk.cut.keys()
    assert {place: rows for place, rows in walk.cut.items() if rows} == {}


def test_all_views_write_alike(walk: Walk) -> None:
    found = []
    for view, (shown, _) in walk.texts.items():
        assert len(shown) > 100
        for right, unlike in UNLIKE.items():
            for hit in re.finditer(unlike, shown, re.M):
                around = shown[max(0, hit.start() - 40) : hit.end() + 40]
                found.append(f"{view}: {right}: {hit.group()!r} in {around!r}")
    assert found == []


def test_no_view_says_a_sentence_twice(walk: Walk) -> None:
    found = {}
    for view, (_, sentences) in walk.texts.items():
        assert sentences
        times = Counter(each.strip() for each in sentences if len(each.split()) > 4)
        found[view] = [each for each, count in times.items() if count > 1]
    assert {view: twice for view, twice in found.items() if twice} == {}


FIRST_CELL = "() => document.querySelector('[data-part=table-body] [role=gridcell]').getBoundingClientRect().x"


def test_the_first_column_stays_while_the_others_are_scrolled(new_page: NewPage, server: str) -> None:
    page: Page = new_page(900)
    start(page, server)
    go(page, VIEWS["kernels"])
    before = page.evaluate(FIRST_CELL)
    table = page.locator("[data-part=table-scroll]").first
    assert table.evaluate("each => { each.scrollLeft = 1000; return each.scrollLeft }") > 0
    assert page.evaluate(FIRST_CELL) == before
