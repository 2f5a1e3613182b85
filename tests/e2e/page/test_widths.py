"""Every view from the narrowest to the widest screen: nothing is cut off."""

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

OVER = """wide => {
  const over = (element, name) => element.scrollWidth > element.clientWidth + 1 ? [name] : [];
  const page = document.getElementById('page');
  const tables = wide ? [...page.querySelectorAll('[role=grid], [role=treegrid], table')] : [];
  return [
    ...over(document.documentElement, 'document'),
    ...over(page, 'page'),
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
            page.set_viewport_size({"width": width, "height": 900})
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
