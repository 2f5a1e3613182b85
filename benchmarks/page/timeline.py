"""What the timeline costs the browser: work per frame while one pans and zooms, answers, memory, the first paint.

    python -m benchmarks.timeline --events 1000000 --write build/one/run/worker.pt.trace.json
    python -m benchmarks.page.timeline build/one [FOLDER ...] [--rounds 3]

A real TensorBoard, a Chromium without GPU, the page as it was built. The trace is in the cache and the server has
just started. Chromium's own tracing says how long the page's main thread worked between two frames, whatever on:
script, layout, paint. Printed is one row per folder, as a Markdown table.
"""

from __future__ import annotations

import argparse
import re
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Browser, Frame, Page, Request, sync_playwright

from benchmarks.measure import pss_mb
from tests.support.browser.chromium import ARGUMENTS, chromium
from tests.support.browser.work import DRAWS, record, tasks
from tests.support.servers.tensorboard import tensorboard
from tests.support.waiting import until

READ_SECONDS = 600
HAND_MS = 200
FRAME_MS = 1000 / 60
LINK = "[data-part=nav-item][title=Trace]"

# Resolves to the milliseconds from the click to the frame after the one that drew the tiles of the window.
FIRST_PAINT = """link => new Promise(resolve => {
    const begin = performance.now();
    const look = () => requestAnimationFrame(
        document.querySelector('[data-part=timeline][data-state=drawn]')
          ? () => resolve(performance.now() - begin)
          : look
    );
    link.click();
    look();
})"""
ANSWER = re.compile("trace/(tile|counters)")


@dataclass(frozen=True)
class Round:
    """One opening: ms to the first paint, ms (CPU, wall) per frame and stretch, ms and bytes per answer, MB."""

    first_paint: float
    frames: np.ndarray
    stretches: np.ndarray
    answers: np.ndarray
    heap_mb: float
    process_mb: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path, help="log folders with one run each")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--width", type=int, default=1440)
    parser.add_argument("--height", type=int, default=900)
    parser.add_argument(
        "--browser", default=chromium(), help="path of the Chromium to use, else the machine's or Playwright's own"
    )
    parser.add_argument("--worst", action="store_true", help="say what the five longest frames were spent on")
    options = parser.parse_args()
    print(
        "| folder | frames | median ms | 95 % ms | worst ms | answers | median ms | worst ms | largest KB ", end=""
    )
    print("| JS heap MB | process MB | first paint s |")
    print("|" + "---|" * 12)
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as cache:
        browser = playwright.chromium.launch(executable_path=options.browser, args=ARGUMENTS)
        size = {"width": options.width, "height": options.height}
        for folder in options.folders:
            own = Path(cache) / folder.name
            with page_of(browser, folder, own, size):
                # The trace is read and kept, and so is what a timeline is asked first.
                until(lambda own=own: list(own.rglob("*.trace.counters.json")))
            rounds = [measure(browser, folder, own, size, options.worst) for _ in range(options.rounds)]
            print(row(folder.name, rounds), flush=True)
        browser.close()


def row(name: str, rounds: list[Round]) -> str:
    frames = np.concatenate([each.frames for each in rounds])
    answers = np.concatenate([each.answers for each in rounds])
    median = np.median(frames, axis=0)
    most = np.concatenate([each.stretches for each in rounds]).max(axis=0)
    high = np.quantile(frames, 0.95, axis=0)
    cells = [
        name,
        f"{len(frames):,}",
        *(f"{cpu:.1f} ({wall:.1f})" for cpu, wall in (median, high, most)),
        f"{len(answers):,}",
        f"{np.median(answers[:, 0]):.0f}",
        f"{answers[:, 0].max():.0f}",
        f"{answers[:, 1].max() / 1e3:.0f}",
        f"{max(each.heap_mb for each in rounds):.0f}",
        f"{max(each.process_mb for each in rounds):.0f}",
        f"{statistics.median(each.first_paint for each in rounds) / 1e3:.2f}",
    ]
    return f"| {' | '.join(cells)} |"


@contextmanager
def page_of(browser: Browser, folder: Path, cache: Path, size: dict[str, int]) -> Iterator[tuple[Page, Frame]]:
    """Yield the Overview of a folder, read completely, from a server that was just started."""
    with tensorboard("--logdir", str(folder), cache=cache) as address:
        context = browser.new_context(viewport=size)
        page = context.new_page()
        page.goto(f"{address}/#pytorch_profiler")
        frames = page.frame_locator("iframe")
        frames.locator(LINK).wait_for(timeout=READ_SECONDS * 1000)
        frames.locator("h1").wait_for(timeout=READ_SECONDS * 1000)
        yield page, next(frame for frame in page.frames if frame.parent_frame)
        context.close()


def measure(browser: Browser, folder: Path, cache: Path, size: dict[str, int], worst: bool) -> Round:
    with page_of(browser, folder, cache, size) as (page, frame):
        frame.locator(LINK).hover()  # as a hand does, a moment before it clicks
        page.wait_for_timeout(HAND_MS)
        first_paint = frame.locator(LINK).evaluate(FIRST_PAINT)
        memory = HeapPeaks(browser, page)
        memory.collect()
        answered: list[Request] = []
        page.on("requestfinished", lambda request: answered.append(request))
        thread = record(browser, page, lambda: drive(page, frame, memory))
        answers = np.array([cost(request) for request in answered if ANSWER.search(request.url)])
        frames, stretches = work_per_frame(thread, worst)
        return Round(first_paint, frames, stretches, answers, memory.heap_mb, memory.process_mb)


def cost(request: Request) -> tuple[float, float]:
    """Return ms from the request to the last byte, and bytes on the wire."""
    timing = request.timing
    return timing["responseEnd"] - timing["requestStart"], request.sizes()["responseBodySize"]


def drive(page: Page, frame: Frame, memory: HeapPeaks) -> None:
    """Zoom in from the whole to single slices and out again, panning on the way, by keys and by wheel."""
    stage = frame.locator("[data-part=stage]")
    box = stage.bounding_box()
    assert box is not None
    x, y = box["x"] + 0.6 * box["width"], box["y"] + 0.5 * box["height"]
    page.mouse.move(x, y)

    def wheel(times: int, dx: int = 0, dy: int = 0, held: str | None = None) -> None:
        if held:
            page.keyboard.down(held)
        for _ in range(times):
            page.mouse.wheel(dx, dy)
            page.wait_for_timeout(16)
        if held:
            page.keyboard.up(held)

    def press(keys: str) -> None:
        for key in keys:
            page.keyboard.press(key)
            page.wait_for_timeout(33)

    for key, back in (("w", "d"), ("w", "a"), ("w", "d"), ("s", "a"), ("s", "d"), ("s", "a")):
        press(key * 8)
        press(back * 12)
        wheel(20, dx=60)
        page.wait_for_timeout(400)
        wheel(20, dy=-40 if key == "w" else 40, held="Control")
        wheel(20, dx=-90)
        memory.look()
        page.wait_for_timeout(400)


class HeapPeaks:
    """The most that the page's heap and its process held, MB."""

    def __init__(self, browser: Browser, page: Page) -> None:
        self._session = page.context.new_cdp_session(page)
        self._session.send("Performance.enable")
        processes = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
        self._pids = [int(each["id"]) for each in processes if each["type"] == "renderer"]
        self.heap_mb = self.process_mb = 0.0

    def collect(self) -> None:
        """Collect the garbage of TensorBoard's start, so that none is collected while the timeline is measured."""
        self._session.send("HeapProfiler.collectGarbage")

    def look(self) -> None:
        metrics = self._session.send("Performance.getMetrics")["metrics"]
        heap = next(each["value"] for each in metrics if each["name"] == "JSHeapUsedSize")
        self.heap_mb = max(self.heap_mb, heap / 1e6)
        self.process_mb = max(self.process_mb, *(pss_mb(pid) for pid in self._pids))


def work_per_frame(thread: list[dict[str, Any]], worst: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return ms that the page's main thread worked, CPU and wall time, [n, 2]: per drawn frame, and per stretch.

    To a frame counts every task from the one that drew the frame before: what its input caused, script, layout,
    paint, answers that arrived, garbage. Wall time also has what other processes took of the machine's cores
    meanwhile. A stretch ends with a frame too, or when the thread has been idle for so long that a frame could
    have been drawn: what is done before a pause does not hold up the frame after it.
    """
    ran = tasks(thread)
    starts = np.array([task["ts"] for task in ran])
    spent = np.array([(task.get("tdur", 0), task["dur"]) for task in ran]) / 1e3
    draws = sorted(each["ts"] for each in thread if each["name"] == DRAWS)
    # The task that draws is the last one that began before.
    drawing = np.unique(np.searchsorted(starts, draws, "right")) - 1
    inside = slice(drawing[0], drawing[-1])
    frames = np.add.reduceat(spent[inside], drawing[:-1] - drawing[0])
    idle = starts[1:] - (starts + spent[:, 1] * 1e3)[:-1]
    rested = 1 + np.flatnonzero(idle >= FRAME_MS * 1e3)
    begins = np.union1d(drawing[:-1], rested[(rested > drawing[0]) & (rested < drawing[-1])])
    stretches = np.add.reduceat(spent[inside], begins - drawing[0])
    if worst:
        bounds = starts[np.append(begins, drawing[-1])]
        for i in np.argsort(stretches[:, 0])[::-1][:5]:
            parts = [
                each for each in thread if bounds[i] <= each["ts"] < bounds[i + 1] and each.get("tdur", 0) > 2000
            ]
            named = (f"{each['name']} {each['tdur'] / 1e3:.1f}" for each in parts)
            print(f"{stretches[i, 0]:.1f} ms in {(bounds[i + 1] - bounds[i]) / 1e3:.0f} ms:", *named)
    return frames, stretches


if __name__ == "__main__":
    main()
