"""What is in sight when a timeline of a training run opens, and in which order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

import torch_tb_profiler
from tests.e2e.page.places import TWO_FRAMES, go, start
from tests.support.page import NewPage, until_heard
from tests.support.servers.tensorboard import UNCHANGED_POLL_S, tensorboard

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SIMULATED = "simulated_8_h100_late_rank"
REAL = ("tl_h100_qwen15", "part_a100_bs128_3span", "torchrec_sst_4rank_b")
"""A GPU each; the last one has a backward thread and six streams."""

SCREENS = {1440: 900, 1920: 1080, 2560: 1440}
LANES = 4

LABELS = """() => {
  const room = document.querySelector('[data-part=tracks]').getBoundingClientRect();
  const bottom = Math.min(room.bottom, innerHeight);
  return [...document.querySelectorAll('[data-part=track-label][data-track]')].map(label => {
    const box = label.getBoundingClientRect();
    const text = label.innerText.split('\\n').map(line => line.trim());
    const lanes = Math.floor(box.height / Number(label.dataset.lane));
    return { track: Number(label.dataset.track), seen: box.top >= room.top && box.bottom <= bottom, text, lanes };
  });
}"""


@pytest.fixture(scope="module")
def real(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    log = tmp_path_factory.mktemp("log")
    for run in REAL:
        (log / run).symlink_to(corpus / "traces" / run)
    cache = tmp_path_factory.mktemp("cache")
    with tensorboard("--logdir", str(log), cache=cache, poll=UNCHANGED_POLL_S) as address:
        yield address, log


def test_the_simulated_job_opens_with_all_that_matters_in_sight(
    new_page: NewPage, sample_server: str, samples: Path
) -> None:
    opens(new_page(), sample_server, samples, SIMULATED)


@pytest.mark.parametrize("run", REAL)
def test_real_runs_open_with_all_that_matters_in_sight(
    new_page: NewPage, real: tuple[str, Path], run: str
) -> None:
    opens(new_page(), *real, run)


def opens(page: Page, address: str, log: Path, run: str) -> None:
    """Check that main thread, backward thread and streams are in sight, above the counters of their group."""
    tracks = tracks_of(log, run)
    strip: list[str] = []
    page.on("request", lambda request: strip.append(request.url) if "width=800" in request.url else None)
    start(page, address)
    for width, height in SCREENS.items():
        page.set_viewport_size({"width": width, "height": height})
        go(page, {"view": "trace", "run": run})
        expect(page.locator("[data-part=answer] [data-part=why]")).not_to_be_empty()
        page.evaluate(TWO_FRAMES)  # the rows are laid out anew for another height
        labels = page.evaluate(LABELS)
        seen = [tracks[label["track"]] for label in labels if label["seen"]]
        named = {track["name"] for track in seen}
        wanted = {track["name"] for track in tracks.values() if matters(track)}
        assert len(wanted) > 1 and wanted <= named, width
        shown = [place(track) for track in seen if matters(track)]
        assert shown == sorted(shown), width
        for group in {track["group"] for track in seen}:
            kinds = [track["kind"] == "counter" for track in seen if track["group"] == group]
            assert kinds == sorted(kinds), width
        for label in labels:
            lanes = tracks[label["track"]]["depth"]
            if lanes > LANES and label["lanes"] < lanes:
                assert (label["lanes"], f"+{lanes - LANES}" in label["text"]) == (LANES, True), label
    requested = parse_qs(urlsplit(until_heard(page, lambda: strip)[-1]).query)["tracks"][0].split(",")
    assert {int(track) for track in requested} <= {label["track"] for label in labels}, "it is drawn in the strip"


def tracks_of(log: Path, run: str) -> dict[int, dict[str, Any]]:
    with torch_tb_profiler.open(str(log)) as opened:
        return {track["id"]: track for track in opened[run].trace().to_dict()["tracks"]}


def matters(track: dict[str, Any]) -> bool:
    own = track["kind"] == "stream" and track["role"] not in ("annotation", "sync")
    return own or track["role"] in ("main", "backward")


def place(track: dict[str, Any]) -> int:
    return 2 if track["kind"] == "stream" else ("main", "backward").index(track["role"])
