"""Charts as files: what each is of, its units and its legend, opened and read."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest
from playwright.sync_api import Locator

from tests.support.page import Open, Tab
from tests.support.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SVG = "{http://www.w3.org/2000/svg}"
PANEL = "xpath=ancestor::*[self::figure or contains(concat(' ', @class, ' '), ' panel ')][1]"


def texts(picture: ET.Element) -> list[str]:
    return ["".join(text.itertext()).strip() for text in picture.iter(f"{SVG}text")]


def legends(panel: Locator) -> set[str]:
    """Return what the chart on the page says its colors mean."""
    named: list[str] = panel.locator("[data-legend]").evaluate_all("nodes => nodes.map(n => n.dataset.legend)")
    return set(named)


def count_pictures(frame: Tab, least: int) -> int:
    """Return how many pictures can be saved; waits until every panel with a button has drawn its chart."""
    buttons = frame.get_by_title("Save the chart as SVG")

    def counts() -> tuple[int, int]:
        picture_counts = [
            buttons.nth(i).locator(PANEL).locator("[data-picture]").count() for i in range(buttons.count())
        ]
        return len(picture_counts), sum(map(bool, picture_counts))

    return until(counts, lambda found: found[0] >= least and found[0] == found[1])[0]


@pytest.mark.parametrize(
    ("params", "least", "told"),
    [
        ({"run": "a_training"}, 2, {"Kernel", "DataLoader", "Step by step, ms"}),
        ({"view": "memory", "run": "n_memory"}, 1, {"allocated", "reserved by the allocator"}),
        (
            {"view": "diff", "run": "p_faster", "base_run": "a_training"},
            2,
            {"base", "candidate", "running sum of the differences"},
        ),
        ({"view": "idle", "run": "a_training"}, 2, set()),
        ({"view": "kernels", "run": "a_training", "select": "sgemm"}, 1, set()),
        ({"view": "operators", "run": "a_training"}, 1, set()),
        ({"view": "modules", "run": "m_modules", "show": "flame"}, 1, set()),
    ],
    ids=lambda value: value.get("view", "overview") if isinstance(value, dict) else None,
)
def test_a_picture_says_what_it_is_of_and_what_its_colors_mean(
    open_page: Open, params: dict[str, str], least: int, told: set[str]
) -> None:
    page, frame = (
        open_page(worker="w", span="1", **params) if params["run"] == "a_training" else open_page(**params)
    )
    count = count_pictures(frame, least)
    names, read = [], set[str]()
    for i in range(count):
        button = frame.get_by_title("Save the chart as SVG").nth(i)
        panel = button.locator(PANEL)
        with page.expect_download() as saved:
            button.click()
        names.append(saved.value.suggested_filename)
        text = saved.value.path().read_text()
        assert "color(srgb" not in text, "mixed colors are written as every program reads them"
        picture = ET.fromstring(text)
        found = texts(picture)
        assert found[0].startswith(params["run"]), found[0]
        heading = " ".join(found)
        for title in panel.locator("[data-picture]").evaluate_all("nodes => nodes.map(n => n.dataset.picture)"):
            assert title in heading
        assert legends(panel) <= set(found)
        width = float(picture.get("width", "0"))
        for dot in picture.findall(f"{SVG}rect"):
            assert 0 <= float(dot.get("x", "0")) < width
            assert dot.get("fill") not in (None, "", "none"), "an entry of the legend has a color"
        read |= set(found)
    assert told <= read
    assert len(set(names)) == count, names
    assert all(name.startswith(params["run"]) for name in names)


def test_a_picture_of_a_comparison_names_both_sides(open_page: Open) -> None:
    page, frame = open_page(view="diff", run="p_faster", base_run="a_training")
    count_pictures(frame, 2)
    with page.expect_download() as saved:
        frame.get_by_title("Save the chart as SVG").first.click()
    assert re.fullmatch(
        r"p_faster\..*difference_by_category_from_a_training_w_span_\d\.svg", saved.value.suggested_filename
    )
    heading = " ".join(texts(ET.fromstring(saved.value.path().read_text())))
    assert re.search(r"ms per step: base a_training · w · span \d", heading)


def test_labels_stay_above_their_halo_and_numbers_are_kept(open_page: Open) -> None:
    page, frame = open_page(run="a_training", worker="w", span="1")
    steps = frame.locator("section", has=frame.get_by_role("heading", name="Step by step"))
    with page.expect_download() as saved:
        steps.get_by_title("Save the chart as SVG").click()
    assert saved.value.suggested_filename == "a_training.w.span_1.steps.svg"
    text = saved.value.path().read_text()
    found = texts(ET.fromstring(text))
    assert found[0] == "a_training · w · span 1"
    assert "1.00" in found
    assert 'paint-order="stroke' in text


def test_a_picture_is_saved_in_pixels_twice_as_fine(open_page: Open) -> None:
    page, frame = open_page(view="memory", run="n_memory")
    count_pictures(frame, 1)
    sizes = []
    for kind in ("SVG", "PNG"):
        with page.expect_download() as saved:
            frame.get_by_title(f"Save the chart as {kind}").first.click()
        assert saved.value.suggested_filename.endswith(f".{kind.lower()}")
        sizes.append(saved.value.path().read_bytes())
    drawing = ET.fromstring(sizes[0])
    assert sizes[1][:8] == b"\x89PNG\r\n\x1a\n"
    width, height = (int.from_bytes(sizes[1][at : at + 4], "big") for at in (16, 20))
    assert width == int(2 * float(drawing.get("width", "0")))
    assert height == int(2 * float(drawing.get("height", "0")))
