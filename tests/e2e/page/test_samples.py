"""The first look of those who follow the README."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.support.page import NewPage
from tests.support.servers.tensorboard import tensorboard

pytestmark = [pytest.mark.browser, pytest.mark.slow]

README = Path(__file__).parents[3] / "README.md"

WITHOUT = ["Lightning", "Overlap"]
"""Tabs about other trainers and other files."""


def test_the_address_of_the_readme_shows_the_job_and_nearly_all_tabs_have_something(
    new_page: NewPage, samples: Path, tmp_path: Path
) -> None:
    found = re.search(r"<http://localhost:6006(/#[^>]+)>", README.read_text("utf-8"))
    assert found
    with tensorboard("--logdir", str(samples), cache=tmp_path) as address:
        page = new_page()
        page.goto(f"{address}{found.group(1)}")
        frame = page.frame_locator("iframe")
        expect(frame.get_by_role("heading", name="Find out why rank 5 is late", exact=True)).to_be_in_viewport()
        expect(frame.locator("[data-part=nav-item]", has_text="no data")).to_contain_text(WITHOUT)
