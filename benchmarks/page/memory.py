"""What a million memory events cost the browser: work of the page while one scrolls, points and sorts.

    python -m benchmarks.page.memory [--events 1000000] [--browser PATH]

A drawn trace in a real TensorBoard and a Chromium without GPU. Chromium's own tracing says how long the tasks of
the page's main thread took, CPU time: script, layout, paint. Printed is one row of a Markdown table.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np
from playwright.sync_api import FrameLocator, Page, sync_playwright

from benchmarks.page.timeline import READ_SECONDS
from tests.support.browser.chromium import ARGUMENTS, chromium
from tests.support.browser.work import record, tasks
from tests.support.servers.tensorboard import tensorboard

STEPS = 100


def write(path: Path, count: int) -> None:
    """Write `count` allocations and releases within operators, in steps."""
    total = 0
    lines = []
    pairs = count // 2
    for i in range(pairs):
        size = 512 * (1 + i * 7919 % 4000)
        at = i * 20
        if i % (pairs // STEPS) == 0:
            row = {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{i * STEPS // pairs}", "pid": 1}
            lines.append(json.dumps({**row, "tid": 1, "ts": at, "dur": pairs // STEPS * 20 - 1}))
        row = {"ph": "X", "cat": "cpu_op", "name": f"aten::op{i % 300}", "pid": 1, "tid": 1, "ts": at, "dur": 9}
        lines.append(json.dumps(row))
        for sign, when in ((1, at + 1), (-1, at + 12)):
            total += sign * size
            args = {"Device Type": 1, "Device Id": 0, "Addr": 4096 * (i % 50_000 + 1), "Bytes": sign * size}
            args |= {"Total Allocated": total, "Total Reserved": 1 << 30}
            row = {"ph": "i", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": when, "args": args}
            lines.append(json.dumps(row))
    path.write_text('{"schemaVersion": 1, "traceEvents": [\n' + ",\n".join(lines) + "\n]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument(
        "--browser", default=chromium(), help="path of the Chromium to use, else the machine's or Playwright's own"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        write(Path(folder) / "worker.1.pt.trace.json", options.events)
        with tensorboard("--logdir", folder, cache=Path(folder) / "cache") as address:
            browser = playwright.chromium.launch(executable_path=options.browser, args=ARGUMENTS)
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            page.goto(f"{address}/#pytorch_profiler&p.pytorch_profiler.view=memory")
            frame = page.frame_locator("iframe")
            frame.locator("[data-part=memory-curve] [data-part=allocated]").wait_for(timeout=READ_SECONDS * 1000)
            frame.locator("[data-part=memory-tables] [role=row]").nth(3).wait_for(timeout=READ_SECONDS * 1000)
            thread = record(browser, page, lambda: use(page, frame))
            browser.close()
    work = np.array([task.get("tdur", 0) / 1e3 for task in tasks(thread)])
    print("| events | tasks | 99 % ms | longest ms | over 50 ms |")
    print("|---|---|---|---|---|")
    cells = f"{len(work):,} | {np.quantile(work, 0.99):.1f} | {work.max():.1f} | {(work > 50).sum()}"
    print(f"| {options.events:,} | {cells} |")


def use(page: Page, frame: FrameLocator) -> None:
    """Point along the curve, scroll through all rows, sort, search, and take a range."""
    box = frame.locator("[data-part=memory-curve] svg").bounding_box()
    assert box is not None
    for i in range(40):
        page.mouse.move(box["x"] + 80 + i * 12, box["y"] + 100)
        page.wait_for_timeout(16)
    scroller = frame.locator("[data-part=memory-tables] [data-part=table-scroll]")
    for i in range(40):
        scroller.evaluate("(e, share) => e.scrollTo(0, share * e.scrollHeight)", i / 40)
        page.wait_for_timeout(33)
    frame.get_by_role("button", name="Allocated", exact=True).click()
    page.wait_for_timeout(500)
    frame.get_by_label("Filter by operator").fill("op42")
    page.wait_for_timeout(500)
    page.mouse.move(box["x"] + 200, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 400, box["y"] + 100, steps=10)
    page.mouse.up()
    page.wait_for_timeout(1000)


if __name__ == "__main__":
    main()
