"""The first look of those who follow the README."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.page.places import go, start
from tests.support.page import NewPage
from tests.support.waiting import until
from torch_tb_profiler.views import SLUGS

pytestmark = [pytest.mark.browser, pytest.mark.slow]

README = Path(__file__).parents[3] / "README.md"

WITHOUT = ["Lightning", "Overlap"]
"""Tabs about other trainers and other files."""

JOB = "simulated_8_h100_late_rank"

TOP_KERNEL = "NCCL AllReduce Sum bf16 RING LL"
"""The kernel with the most time."""

RAW = re.compile(r"\bvoid \w|cutlass_|ampere_|ncclDevKernel_|_ZN\d|at::native::|triton_\w+_fused|\w<\w")
"""How the compilers and libraries spell kernels."""

# Collects what any canvas is asked to write.
WRITTEN = """
  window.written = new Set();
  const write = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
    window.written.add(text);
    return write.call(this, text, ...rest);
  };
"""

# What is read or said on the page, but for names that appear on hover and where the full name is shown as such.
READ = """() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const texts = [...document.querySelectorAll('[aria-label]')].map(each => each.getAttribute('aria-label'));
  while (walker.nextNode()) {
    const parent = walker.currentNode.parentElement;
    if (parent.closest('title, script, style, [data-part=full-name]')) continue;
    texts.push(walker.currentNode.textContent);
  }
  return [...texts, ...window.written];
}"""


def test_the_address_of_the_readme_shows_the_job_and_nearly_all_tabs_have_something(
    new_page: NewPage, sample_server: str
) -> None:
    found = re.search(r"<http://localhost:6006(/#[^>]+)>", README.read_text("utf-8"))
    assert found
    page = new_page()
    page.goto(f"{sample_server}{found.group(1)}")
    frame = page.frame_locator("iframe")
    expect(frame.get_by_role("heading", name="1 Find out why rank 5 is late")).to_be_in_viewport()
    expect(frame.locator("[data-part=nav-item]", has_text="no data")).to_contain_text(WITHOUT)


def test_a_job_of_snapshots_opens_at_memory_and_leads_to_the_rank_that_ran_out(
    new_page: NewPage, sample_server: str
) -> None:
    page = new_page()
    page.goto(f"{sample_server}/#pytorch_profiler&p.pytorch_profiler.run=simulated_out_of_memory")
    frame = page.frame_locator("iframe")
    evidence = frame.locator("[data-part=why]")
    expect(evidence).to_contain_text("Rank 2 ran out of memory.")
    expect(frame.get_by_role("heading", level=1)).to_contain_text("GPU 0 had ")
    evidence.get_by_text("Rank 2").click()
    expect(frame.get_by_role("heading", level=1)).to_contain_text("Out of memory")
    expect(frame.locator("[data-part=failures]")).to_have_count(0)


def test_no_view_of_the_simulated_job_spells_a_kernel_as_its_compiler_does(
    unused_page: Page, sample_server: str
) -> None:
    """Nor do the details of the first row of any table, and the drawing of the timeline."""
    read: dict[str, list[str]] = {}
    page = unused_page
    page.add_init_script(WRITTEN)
    start(page, sample_server)
    for slug in SLUGS:
        go(page, {"view": slug, "run": JOB})
        read[slug] = page.evaluate(READ)
        rows = page.locator("[data-part=table-body] [role=row][aria-selected]")
        if rows.count():
            rows.first.click()
            expect(page.locator("#page [aria-busy=true]")).to_have_count(0)
            read[slug] += page.evaluate(READ)
    go(page, {"view": "kernels", "run": JOB})
    page.locator("[data-part=table-body] [role=row]").first.click()
    page.get_by_role("button", name="Show on timeline").click()
    expect(page.locator("[data-part=event-details] h2")).to_have_text(TOP_KERNEL)
    expect(page.locator("[data-part=timeline][data-state=drawn]")).to_be_visible()
    page.locator("[data-part=stage]").focus()
    page.keyboard.press("f")
    until(lambda: TOP_KERNEL in page.evaluate("[...window.written]"))
    read["a slice"] = page.evaluate(READ)
    assert {slug: spelled for slug, texts in read.items() if (spelled := [*filter(RAW.search, texts)])} == {}
    assert any(TOP_KERNEL in text for text in read["kernels"])
