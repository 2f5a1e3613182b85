"""Every view from the narrowest to the widest screen: nothing is cut off, and no panel covers another."""

from __future__ import annotations

import operator
from functools import partial

import pytest
from playwright.sync_api import Page

from tests.e2e.page.places import VIEWS, go, start
from tests.support.page import NewPage
from tests.support.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.slow]

WIDTHS = (320, 900, 1440, 1920, 2560)
"""320 px are a window of 1,280 px at a zoom of 400%."""

HEIGHT = 700
"""Of the page in the window of a laptop, below TensorBoard's header."""

OVER = """wide => {
  const over = (element, name) => element.scrollWidth > element.clientWidth + 1 ? [name] : [];
  const page = document.getElementById('page');
  const PANEL = '.panel, [data-part=table]';
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
}"""


def test_no_width_cuts_a_view_off(new_page: NewPage, server: str) -> None:
    """From 1440 on the tables fit, too; narrower ones are scrolled by themselves."""
    page: Page = new_page()
    start(page, server)
    for state in VIEWS.values():
        go(page, state)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": HEIGHT})
            # A chart is drawn anew for the new width a few frames later.
            until(partial(page.evaluate, OVER, width >= 1440), operator.not_)


FIRST_CELL = "() => document.querySelector('[data-part=table-body] [role=gridcell]').getBoundingClientRect().x"


def test_the_first_column_stays_while_the_others_are_scrolled(new_page: NewPage, server: str) -> None:
    page: Page = new_page(900)
    start(page, server)
    go(page, VIEWS["kernels"])
    before = page.evaluate(FIRST_CELL)
    table = page.locator("[data-part=table-scroll]").first
    assert table.evaluate("each => { each.scrollLeft = 1000; return each.scrollLeft }") > 0
    assert page.evaluate(FIRST_CELL) == before
