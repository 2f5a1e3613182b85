"""A thread that is blamed for the device's idle time isn't blank there: Python is drawn where no operator is."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.support.page import Open, lane_height

pytestmark = [pytest.mark.browser, pytest.mark.slow]

INK = """(canvas, y) => {
  const ratio = devicePixelRatio, row = Math.round(y * ratio);
  const colors = canvas.getContext('2d').getImageData(0, row, canvas.width, 1).data;
  const at = share => [...colors.slice(4 * Math.round(share * canvas.width)).slice(0, 3)].join();
  return { blamed: at(0.3), empty: at(0.005) };
}"""
"""The color of a height of the drawing where the frame runs, and before anything does."""


def test_the_blamed_thread_shows_what_python_does(open_page: Open) -> None:
    page, frame = open_page(view="trace", run="x_framed")
    expect(frame.locator("[data-part=timeline][data-state=drawn]")).to_be_visible()
    python = frame.get_by_role("button", name="Python", exact=True)
    expect(python).to_have_attribute("aria-pressed", "false")
    stage = frame.locator("[data-part=stage]")
    box = stage.bounding_box()
    assert box is not None
    height = lane_height(frame, 1)
    ink = stage.locator("canvas").first.evaluate(INK, height - box["y"])
    assert ink["blamed"] != ink["empty"]
    page.mouse.click(box["x"] + 0.3 * box["width"], height)
    expect(frame.locator("[data-part=event-details] h2")).to_contain_text("preprocess")
    expect(python).to_have_attribute("aria-pressed", "false")


def test_the_blame_leads_to_it(open_page: Open) -> None:
    page, frame = open_page(view="trace", run="x_framed")
    expect(frame.locator("[data-part=timeline][data-state=drawn]")).to_be_visible()
    blame = frame.locator("[data-part=track-label][data-kind=blame]").bounding_box()
    box = frame.locator("[data-part=stage]").bounding_box()
    assert blame is not None and box is not None
    page.mouse.click(box["x"] + 0.3 * box["width"], blame["y"] + blame["height"] - 6)
    details = frame.locator("[data-part=dock]")
    expect(details).to_contain_text("preprocess")
