"""Saving and copying where the page may not download: in a sandboxed frame, as an editor's webview has it."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import FrameLocator, Page, expect

from tests.support.page import NewPage, draw_training
from tests.support.servers.tensorboard import tensorboard

pytestmark = [pytest.mark.browser, pytest.mark.slow]

FRAME = """<iframe sandbox="{flags}" style="width: 1400px; height: 850px"
  src="{address}/data/{entry}#pytorch_profiler&p.pytorch_profiler.run=run"></iframe>
<textarea id="paste"></textarea>"""

ENTRIES = {
    "allow-scripts allow-same-origin": "plugin_entry.html?name=pytorch_profiler",
    "allow-scripts": "plugin/pytorch_profiler/page.html",
}
"""Flags of the frame, and the page in it: without an origin, a frame may read what that page has the key for."""

READ = """path => fetch(path).then(answer => answer.text(), error => `refused: ${error.message}`)"""


def open_sandboxed(page: Page, address: str, flags: str) -> FrameLocator:
    around = FRAME.format(address=address, flags=flags, entry=ENTRIES[flags])
    page.route(f"{address}/around", lambda route: route.fulfill(body=around, content_type="text/html"))
    page.goto(f"{address}/around")
    frame = page.frame_locator("iframe")
    expect(frame.get_by_role("heading", name="Breakdown")).to_be_visible()
    return frame


@pytest.mark.parametrize("flags", ENTRIES)
def test_a_table_is_saved_by_the_server_and_copied_by_selection(
    new_page: NewPage, tmp_path: Path, flags: str, trouble: list[str]
) -> None:
    log = tmp_path / "log"
    (log / "run").mkdir(parents=True)
    (log / "run" / "w.pt.trace.json").write_bytes(draw_training())
    with tensorboard("--logdir", str(log), cache=tmp_path / "cache") as address:
        page: Page = new_page(1440, 900)
        page.on("pageerror", lambda error: trouble.append(str(error)))
        frame = open_sandboxed(page, address, flags)
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
        # Nothing of the page needs storage, its own history or a worker of its own.
        frame.get_by_role("button", name="Trace", exact=True).click()
        expect(frame.locator("[data-part=timeline][data-state=drawn]")).to_be_visible()
        frame.get_by_role("button", name="Kernels", exact=True).click()
        expect(frame.locator("[data-part=table-body] [role=row]").first).to_be_visible()


def test_the_frame_of_another_site_reads_nothing(new_page: NewPage, server: str) -> None:
    page = new_page()
    page.route(
        "http://elsewhere.example/",
        lambda route: route.fulfill(
            body='<iframe sandbox="allow-scripts" srcdoc="<h1>x</h1>"></iframe>', content_type="text/html"
        ),
    )
    page.goto("http://elsewhere.example/")
    plugin = f"{server}/data/plugin/pytorch_profiler"
    for frame in page.frames:
        for path in ("page.html", "runs", "index.js"):
            assert frame.evaluate(READ, f"{plugin}/{path}").startswith("refused: "), (frame.url, path)
