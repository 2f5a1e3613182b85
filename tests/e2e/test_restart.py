"""An open page whose server goes away and comes back."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.support.logs import write_log
from tests.support.page import NewPage
from tests.support.servers.fragile import server

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="signals"),
]


def test_a_page_outlives_its_server(new_page: NewPage, tmp_path: Path) -> None:
    """What is drawn stays, what is asked meanwhile says that nobody answers and comes by itself afterwards."""
    log = write_log(tmp_path / "log", workers=2)
    environ = {"TORCH_PROFILER_CACHE_DIR": str(tmp_path / "cache")}
    with server(log, **environ) as made:
        page = new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"{made.url}/#pytorch_profiler")
        frame = page.frame_locator("iframe")
        title = frame.locator("h1")
        expect(title).to_contain_text("Start here")  # which follows once the schedule is replayed
        shown_title = title.inner_text()
        operators = frame.locator("[data-part=nav-item]", has_text="Operators")
        expect(operators).to_be_visible()
        made.stop(signal.SIGKILL)
        expect(title).to_have_text(shown_title)
        operators.click()
        expect(title).to_contain_text("not responding")
        made.start()
        expect(title).not_to_contain_text("not responding")
        expect(frame.get_by_text("aten::op1", exact=True).first).to_be_visible()
        assert errors == []
