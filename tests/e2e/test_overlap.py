"""Overlap in a browser: maps lead to the timeline, another folder is compared, empty tabs say why they are."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.e2e.page.places import choose
from tests.support.page import Open

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.mark.parametrize(("width", "theme"), [(900, "light"), (1440, "dark")])
def test_the_answer_the_maps_and_what_was_recorded(open_page: Open, width: int, theme: str) -> None:
    _, frame = open_page(width=width, theme=theme, view="overlap", run="s_rocm")
    expect(frame.locator("h1")).to_contain_text("Exposed communication takes")
    expect(frame.get_by_role("figure", name="Exposed communication by rank and iteration")).to_be_visible()
    table = frame.get_by_role("table", name="Recorded and recomputed totals")
    expect(table).to_contain_text("Idle before the last range")
    assert frame.locator("html").evaluate("e => e.scrollWidth <= innerWidth")


@pytest.mark.prefix
def test_a_cell_leads_to_its_iteration_on_the_timeline(open_page: Open) -> None:
    page, frame = open_page(view="overlap", run="s_rocm")
    figure = frame.get_by_role("figure", name="Exposed communication by rank and iteration")
    figure.get_by_title(re.compile("^rank1, step 2")).click()
    expect(page).to_have_url(re.compile("view=trace.*worker=rank1.*at=1000000-1500000"))
    expect(frame.get_by_text("reducescatter", exact=True).first).to_be_visible()


def test_another_folder_is_compared(open_page: Open) -> None:
    page, frame = open_page(view="overlap", run="s_rocm")
    choose(frame, "Run", "t_cuda")
    expect(page).to_have_url(re.compile("with=t_cuda"))
    compared = frame.get_by_role("table", name="Compared")
    expect(compared).to_contain_text("Overlap / computation")
    expect(compared.get_by_role("columnheader", name="t_cuda")).to_be_visible()


def test_a_tab_without_an_answer_leads_to_those_that_have_one(open_page: Open) -> None:
    _, frame = open_page(view="overview", run="s_rocm")
    expect(frame.locator("h1")).to_contain_text("AORTA recorded only busy times of streams per iteration")
    frame.get_by_role("button", name="Open Overlap").click()
    expect(frame.locator("h1")).to_contain_text("Exposed communication takes")
