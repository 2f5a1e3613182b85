"""Saving and copying where the page may not download: in a sandboxed frame, as an editor's webview has it."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import FrameLocator, Page, expect

from tests.support.page import NewPage, draw_training
from tests.support.servers.tensorboard import tensorboard

pytestmark = [pytest.mark.browser, pytest.mark.slow]

FRAME = """<iframe sandbox="allow-scripts allow-same-origin" style="width: 1400px; height: 850px"
  src="{address}/data/plugin_entry.html?name=pytorch_profiler#pytorch_profiler&p.pytorch_profiler.run=run"></iframe>
<textarea id="paste"></textarea>"""


def open_sandboxed(page: Page, address: str) -> FrameLocator:
    page.route(
        f"{address}/around",
        lambda route: route.fulfill(body=FRAME.format(address=address), content_type="text/html"),
    )
    page.goto(f"{address}/around")
    frame = page.frame_locator("iframe")
    expect(frame.get_by_role("heading", name="Breakdown")).to_be_visible()
    return frame


def test_a_table_is_saved_by_the_server_and_copied_by_selection(new_page: NewPage, tmp_path: Path) -> None:
    log = tmp_path / "log"
    (log / "run").mkdir(parents=True)
    (log / "run" / "w.pt.trace.json").write_bytes(draw_training())
    with tensorboard("--logdir", str(log), cache=tmp_path / "cache") as address:
        page: Page = new_page(1440, 900)
        frame = open_sandboxed(page, address)
        download = frame.get_by_role("button", name="Save as CSV").first
        download.click()
        note = frame.locator("[data-part=saved]")
        note.get_by_role("button", name="Save into the log folder").click()
        expect(note.get_by_role("status")).to_contain_text("Saved as")
        (saved,) = (log / "saved_by_profiler").glob("*.csv")
        assert str(saved) in note.inner_text()
        assert "kernel" in saved.read_text(encoding="utf-8").lower()
        download.click()
        note.get_by_role("button", name="Copy it").click()
        expect(note.get_by_role("status")).to_have_text("Copied.")
        page.locator("#paste").press("Control+v")
        pasted = page.locator("#paste").input_value()
        assert pasted == saved.read_text(encoding="utf-8")
