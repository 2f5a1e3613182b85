"""Every view with a run in which it has something to show, and a page that goes from one to the next."""

from __future__ import annotations

from collections.abc import Mapping

from playwright.sync_api import Page, expect

from tests.support.page import Tab
from tests.support.waiting import until
from torch_tb_profiler.views import SLUGS

_RUNS = {
    "memory": "n_memory",
    "modules": "m_modules",
    "lightning": "m_modules",
    "roofline": "r_roofline",
    "serving": "v_serving",
    "distributed": "o_job",
    "overlap": "s_rocm",
    "diff": "p_faster",
}

VIEWS: Mapping[str, dict[str, str]] = {
    slug: {"view": slug, "run": _RUNS.get(slug, "a_training")} for slug in SLUGS
}
"""The state of the address by view."""

TWO_FRAMES = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))"
"""Waits until two frames have been drawn."""


def start(page: Page, server: str, **state: str) -> None:
    """Open the page by itself, without the host's frame."""
    parts = [f"p.pytorch_profiler.{key}={value}" for key, value in state.items()]
    page.goto(f"{server}/data/plugin_entry.html?name=pytorch_profiler#{'&'.join(['pytorch_profiler', *parts])}")
    expect(page.locator("h1")).to_be_visible()


FOLLOW = """hash => new Promise(done => {
  if (location.hash === '#' + hash) return done(0);
  const drawn = () => requestAnimationFrame(() => requestAnimationFrame(() => done(0)));
  addEventListener('hashchange', drawn, { once: true });
  location.hash = hash;
})"""
"""Changes the address and waits until the page has heard of it: what it showed before may look like the answer."""


def go(page: Page, state: Mapping[str, str]) -> None:
    """Show what an address says, and wait until it is drawn."""
    parts = [f"p.pytorch_profiler.{key}={value}" for key, value in state.items()]
    page.evaluate(FOLLOW, "&".join(["pytorch_profiler", *parts]))
    expect(page.locator(f"#page[data-shown='{state['view']} {state['run']}']")).to_be_visible()
    expect(page.locator("#page [aria-busy=true]")).to_have_count(0)
    if state["view"] == "trace":
        expect(page.locator("[data-part=timeline][data-state=drawn]")).to_be_visible()


def wait_until_answered(frame: Tab) -> None:
    """Wait until a view is drawn with all its answers; before, its frame has neither keys nor places to stop."""
    expect(frame.locator("#page[data-shown]")).to_be_visible()
    expect(frame.locator("#page [aria-busy=true]")).to_have_count(0)


def expect_fits(frame: Tab) -> None:
    """Expect nothing to be wider than the window; a chart is drawn for its width a few frames later."""
    until(lambda: frame.locator("html").evaluate("e => e.scrollWidth <= innerWidth"))


def choose(frame: Tab, name: str, value: str) -> None:
    """Pick an option, by its value or its text, in the select of this name."""
    frame.get_by_role("combobox", name=name, exact=True).click()
    named = frame.get_by_role("option", name=value, exact=True)
    frame.locator(f'[role=option][data-value="{value}"]').or_(named).filter(visible=True).click()
