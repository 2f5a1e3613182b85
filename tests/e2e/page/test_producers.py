"""What devices and trainers of other producers record, in a browser: engines and the training loop on lanes."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.e2e.page.places import expect_fits
from tests.support.page import Open, Tab
from tests.support.producers import gaudi

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def labels(frame: Tab) -> list[str]:
    """Return the names of the tracks, once they are drawn."""
    expect(frame.locator("[data-part=timeline][data-state=drawn] [data-part=stage] canvas").first).to_be_visible()
    return frame.locator("[data-part=track-label]").all_inner_texts()


@pytest.mark.parametrize(("width", "theme"), [(900, "light"), (1440, "dark")])
def test_each_engine_of_a_card_has_a_lane(open_page: Open, width: int, theme: str) -> None:
    _, frame = open_page(width=width, height=1200, theme=theme, view="trace", run="u_gaudi")
    shown = labels(frame)
    for lane in {f"{gaudi.NAMES[node.type]} {node.engine}" for node in gaudi.STEP}:
        assert any(lane in each for each in shown), (lane, shown)
    expect_fits(frame)


@pytest.mark.parametrize(("width", "theme"), [(900, "dark"), (1440, "light")])
def test_kernels_show_how_busy_the_engines_are(open_page: Open, width: int, theme: str) -> None:
    _, frame = open_page(width=width, theme=theme, view="kernels", run="u_gaudi")
    table = frame.get_by_role("table", name="Engines by class")
    expect(table).to_contain_text("MME")
    expect(table).to_contain_text("17%")
    recipes = frame.get_by_role("table", name="Recipes")
    expect(recipes).to_contain_text("graph_1")
    expect_fits(frame)


def test_a_recipe_leads_to_its_first_node_on_the_timeline(open_page: Open) -> None:
    _, frame = open_page(view="kernels", run="u_gaudi")
    frame.get_by_role("table", name="Recipes").get_by_role("button", name="graph_2").click()
    details = frame.locator("[data-part=event-details]")
    expect(details.locator("h2")).to_contain_text("add_fwd_bf16")
    expect(details).to_contain_text("graph_2")


@pytest.mark.parametrize(("width", "theme"), [(900, "light"), (1440, "dark")])
def test_the_trainer_has_a_lane_above_its_thread(open_page: Open, width: int, theme: str) -> None:
    _, frame = open_page(width=width, theme=theme, view="trace", run="v_composer")
    assert any("Trainer" in each for each in labels(frame))
    expect(frame.locator("h1")).not_to_be_empty()


@pytest.mark.parametrize(("width", "theme"), [(900, "dark"), (1440, "light")])
def test_clocks_that_only_a_meeting_compares_say_so(open_page: Open, width: int, theme: str) -> None:
    _, frame = open_page(width=width, theme=theme, view="distributed", run="v_composer", table="ranks")
    rows = frame.locator("[data-part=job-tables] [role=row]")
    expect(rows.filter(has_text="reference")).to_have_count(1)
    met = rows.filter(has_text="barrier of the trainer")
    expect(met).to_have_count(1)
    expect(met).to_contain_text("−5.00 s")
    expect(met.locator("[role=gridcell]").nth(1)).to_have_text("1")  # a rank is no measurement: not 1.00
    expect(met).to_contain_text("14.0 µs")
    expect_fits(frame)
