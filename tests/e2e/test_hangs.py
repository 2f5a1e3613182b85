"""The Hangs tab over folders of dumps: small, of many ranks, and broken."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.e2e.page.places import go, start
from tests.support.dumps import hung_job
from tests.support.page import NewPage
from tests.support.servers.tensorboard import tensorboard

pytestmark = [pytest.mark.browser, pytest.mark.slow]

RANKS, CULPRIT = 300, 77


def test_the_tab_shows_who_everybody_waits_for_at_any_size(new_page: NewPage, tmp_path: Path) -> None:
    log = tmp_path / "log"
    hung_job().write(log / "small")
    frames = "    wait (/usr/lib/python3.11/threading.py:320)\n    <b>load</b> (/job/data.py:88)\n"
    (log / "small" / "rank1.stack.txt").write_text(f'Thread 7 (idle): "MainThread"\n{frames}')
    hung_job(RANKS, CULPRIT).write(log / "large")
    for path in hung_job().write(log / "broken").iterdir():
        path.write_bytes(b"\x80\x02cos\nsystem\n.")
    with tensorboard("--logdir", str(log), cache=tmp_path / "cache") as server:
        page = new_page()
        page.emulate_media(color_scheme="dark")
        page.set_viewport_size({"width": 900, "height": 900})
        start(page, server)
        go(page, {"view": "hangs", "run": "small"})
        expect(page.locator("h1")).to_contain_text("Rank 1 never called all_reduce 4")
        absent = page.get_by_role("button", name="all_reduce 4, never called")
        expect(absent).to_have_count(1)
        absent.click()
        expect(page.get_by_role("status").filter(has_text="never called by 1")).to_be_visible()
        stack = page.locator("pre").filter(has_text="data.py:88")
        expect(stack).to_contain_text("<b>load</b>")
        expect(stack).not_to_contain_text("threading.py")
        page.get_by_role("button", name="Show 1 library frame").last.click()
        expect(stack).to_contain_text("threading.py:320")
        assert page.evaluate("document.documentElement.scrollWidth") <= 900

        go(page, {"view": "hangs", "run": "large"})
        picture = page.get_by_role("table", name="Group default_pg, last 4 collectives")
        expect(picture.get_by_role("rowheader")).to_have_text([f"rank {CULPRIT}", f"{RANKS - 1} ranks"])

        go(page, {"view": "hangs", "run": "broken"})
        expect(page.locator("h1")).to_contain_text("No flight recorder can be read")
        expect(page.get_by_text("refused").first).to_be_visible()
