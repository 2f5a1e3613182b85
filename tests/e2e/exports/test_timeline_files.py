"""The timeline as files: what is in sight as a picture, and what is shown added up by name."""

from __future__ import annotations

import csv
import re
import xml.etree.ElementTree as ET

import pytest
from playwright.sync_api import Download, Page, Response, expect

from tests.support.page import Open, Tab

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SVG = "{http://www.w3.org/2000/svg}"
ONE = {"view": "trace", "run": "a_training", "worker": "w", "span": "1"}
RANKS = {"view": "trace", "run": "o_job", "ranks": "rank3,rank4"}


def save_file(page: Page, frame: Tab, kind: str) -> Download:
    expect(frame.locator("[data-part=timeline][data-state=drawn]")).to_be_visible()
    frame.get_by_role("button", name="Download").click()
    with page.expect_download() as found:
        frame.get_by_role("button", name=re.compile(f"{kind}$")).click()
    page.keyboard.press("Escape")
    return found.value


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(
    ("state", "heading", "tracks"),
    [
        (ONE, ["a_training · w · span 1", "Timeline, "], ["stream 7"]),
        (RANKS, ["o_job · rank3 rank4", "Timeline of rank 3, rank 4, "], ["rank 3", "rank 4"]),
    ],
    ids=["one", "ranks"],
)
def test_a_picture_of_the_tracks_says_what_it_is_of_and_what_its_colors_mean(
    open_page: Open, state: dict[str, str], heading: list[str], tracks: list[str], theme: str
) -> None:
    page, frame = open_page(theme=theme, **state)
    file = save_file(page, frame, "SVG")
    assert file.suggested_filename.startswith(state["run"])
    picture = ET.fromstring(file.path().read_text())
    texts = ["".join(text.itertext()) for text in picture.iter(f"{SVG}text")]
    for told, line in zip(heading, texts, strict=False):
        assert line.startswith(told)
    range_shown = frame.locator("[data-part=crumb]").inner_text()
    assert range_shown in " ".join(texts)
    for track in tracks:
        assert any(track in text for text in texts), texts
    labels = frame.locator("[data-part=track-label][data-kind=slices]").all_inner_texts()
    first = labels[0].splitlines()[0]
    assert any(text[:8] == first[:8] for text in texts)
    # The legend holds what the tracks are filled with, each color once, and no other.
    legend = [dot.get("fill") for dot in picture.findall(f"{SVG}rect")][1:]
    filled = {box.get("fill") for part in picture.iter(f"{SVG}svg") for box in part.iter(f"{SVG}rect")}
    assert legend
    assert set(legend) <= filled
    assert len(set(legend)) == len(legend)
    colors = {fill for fill in filled if fill}
    assert all(re.match(r"#|rgba?\(", color) for color in colors), colors


def test_what_ranks_do_in_the_window_is_a_table_of_its_own(open_page: Open) -> None:
    page, frame = open_page(**RANKS)
    responses: list[Response] = []
    page.on("response", lambda told: responses.append(told) if "view/trace/selection" in told.url else None)
    with page.expect_response(re.compile("view/trace/selection.*worker=rank4|worker=rank4.*trace/selection")):
        file = save_file(page, frame, "CSV")
    rows = list(csv.DictReader(file.path().read_text().splitlines()))
    named = {row["name"]: row for row in rows}
    assert len(named) == len(rows)
    assert len(responses) == 2
    for answer in (response.json() for response in responses):
        rank = str(answer["worker"]).replace("rank", "rank ")
        payload = answer["payload"]
        assert isinstance(payload, dict)
        assert payload["rows"]
        for row in payload["rows"]:
            assert int(named[row["name"]][f"{rank} total_ns"]) == row["total_ns"]
            assert int(named[row["name"]][f"{rank} count"]) == row["count"]
    totals = [int(row["rank 3 total_ns"]) + int(row["rank 4 total_ns"]) for row in rows]
    assert totals == sorted(totals, reverse=True)


def test_a_picture_in_pixels_is_as_large_as_the_drawing(open_page: Open) -> None:
    page, frame = open_page(**ONE)
    file = save_file(page, frame, "PNG")
    content = file.path().read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    width = int.from_bytes(content[16:20], "big")
    stage = frame.locator("[data-part=timeline] canvas").first.bounding_box()
    assert stage is not None
    assert width >= 2 * stage["width"]
