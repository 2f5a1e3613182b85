#!/usr/bin/env python3
"""Takes the pictures of the documentation: `python -m scripts.pictures [NAME ...]`, with the tests' environment.

Starts TensorBoard on `samples/` and on drawn runs of other producers, opens each page in Chromium and writes
`docs/images/<NAME>.png`. What a page shows is in its address: a new picture is a line in PICTURES.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Browser, expect, sync_playwright

from tests.support.browser.chromium import ARGUMENTS, chromium
from tests.support.producers import aorta, composer, gaudi
from tests.support.servers.tensorboard import tensorboard
from tests.support.waiting import PATIENCE

ROOT = Path(__file__).resolve().parent.parent
OUT_OF_MEMORY = "simulated_out_of_memory"
JOB, SLOW, FIXED = "simulated_8_h100_late_rank", "data_loading_slow", "data_loading_fixed"
GAUDI, TRAINER, METRICS = "drawn_gaudi", "drawn_trainer", "drawn_metrics"
WIDTH = 1440
MILLISECONDS = 1000 * PATIENCE


SETTLED = """() => document.fonts.ready
  .then(() => new Promise(requestAnimationFrame)).then(() => new Promise(requestAnimationFrame))"""
"""A page never falls silent: it asks for the runs every few seconds."""


class Picture(NamedTuple):
    """A page at an address: its state there, the theme, the height of the window, a text to wait for."""

    name: str
    state: dict[str, str]
    theme: str = "light"
    height: int = 1000
    shows: str = ""


SNAPSHOT = {"view": "memory", "run": OUT_OF_MEMORY, "worker": "rank2", "span": "1"}

PICTURES = [
    Picture(
        "overview-light", {"view": "overview", "run": JOB, "worker": "rank0"}, shows="Find out why rank 5 is late"
    ),
    Picture("overview-dark", {"view": "overview", "run": SLOW}, "dark"),
    Picture("critical-path-light", {"view": "critical_path", "run": JOB, "worker": "rank5"}),
    Picture("critical-path-dark", {"view": "critical_path", "run": SLOW}, "dark"),
    Picture("idle-light", {"view": "idle", "run": JOB, "worker": "rank5"}),
    Picture("idle-dark", {"view": "idle", "run": JOB, "worker": "rank5", "by": "operator"}, "dark"),
    Picture("roofline-light", {"view": "roofline", "run": JOB, "worker": "rank0"}),
    Picture("roofline-dark", {"view": "roofline", "run": JOB, "worker": "rank0", "group_by": "kernel"}, "dark"),
    Picture("operators-light", {"view": "operators", "run": JOB, "worker": "rank0"}),
    Picture("operators-dark", {"view": "operators", "run": JOB, "worker": "rank0", "group_by": "module"}, "dark"),
    Picture("kernels-light", {"view": "kernels", "run": JOB, "worker": "rank0"}),
    Picture("kernels-dark", {"view": "kernels", "run": JOB, "worker": "rank0", "group_by": "launch"}, "dark"),
    Picture("trace-light", {"view": "trace", "run": JOB, "worker": "rank5"}),
    Picture("trace-dark", {"view": "trace", "run": SLOW}, "dark"),
    Picture("modules-light", {"view": "modules", "run": JOB, "worker": "rank0"}),
    Picture("modules-dark", {"view": "modules", "run": "transformer"}, "dark"),
    Picture("modules-flame", {"view": "modules", "run": JOB, "worker": "rank0", "show": "flame"}),
    Picture("origins-light", {"view": "origins", "run": "simulated_graph_replay"}),
    Picture("origins-dark", {"view": "origins", "run": "transformer_compiled"}, "dark"),
    Picture("serving-light", {"view": "serving", "run": "serving"}),
    Picture("serving-dark", {"view": "serving", "run": "serving"}, "dark"),
    Picture("lightning-light", {"view": "lightning", "run": "lightning"}),
    Picture("lightning-dark", {"view": "lightning", "run": "lightning"}, "dark"),
    Picture("snapshot-light", SNAPSHOT, height=1500, shows="Rank 2 differs most: its peak"),
    Picture("memory-dark", {"view": "memory", "run": "transformer"}, "dark"),
    Picture("distributed-light", {"view": "distributed", "run": JOB}, height=1300),
    Picture("distributed-dark", {"view": "distributed", "run": JOB}, "dark", 1300),
    Picture("distributed-timeline", {"view": "trace", "run": JOB, "ranks": "rank4,rank5,rank6"}),
    Picture("hangs-light", {"view": "hangs", "run": "hang_gloo"}, height=1300, shows="Rank 2 never called"),
    Picture("hangs-dark", {"view": "hangs", "run": "hang_gloo"}, "dark", 1300, "Rank 2 never called"),
    Picture("engines-light", {"view": "trace", "run": GAUDI}),
    Picture("engines-dark", {"view": "kernels", "run": GAUDI}, "dark", 1300),
    Picture("trainer-light", {"view": "trace", "run": TRAINER}, height=600),
    Picture("trainer-dark", {"view": "trace", "run": TRAINER}, "dark", 600),
    Picture("overlap-light", {"view": "overlap", "run": METRICS}, height=1300, shows="192 iterations"),
    Picture("overlap-dark", {"view": "overlap", "run": METRICS}, "dark", 1300, "192 iterations"),
    Picture("diff-light", {"view": "diff", "run": FIXED, "base_run": SLOW}, height=1300),
    Picture("diff-dark", {"view": "diff", "run": FIXED, "base_run": SLOW, "part": "0"}, "dark", 1300),
]


def put_runs(folder: Path) -> Path:
    """Put the samples, and runs of producers that the samples lack, into a folder and return it."""
    shutil.copytree(ROOT / "samples", folder, dirs_exist_ok=True)
    batches = [composer.Batch(load=40 + 7 * (number % 5)) for number in range(12)]
    trainer = composer.content(composer.cycle(batches))
    for name, content in (
        (f"{GAUDI}/worker.pt.trace.json", gaudi.content(steps=4)),
        (f"{TRAINER}/ep0-ba12-rank0.json", trainer),
    ):
        (folder / name).parent.mkdir()
        (folder / name).write_bytes(content)
    for rank in range(8):
        lines = [aorta.line(step, aorta.iteration(step + rank), 500, rank=rank) for step in range(24)]
        aorta.write(folder / METRICS, rank, lines)
    return folder


def main(names: Sequence[str]) -> int:
    chosen = [picture for picture in PICTURES if not names or picture.name in names]
    if unknown := set(names) - {picture.name for picture in chosen}:
        sys.stderr.write(f"no picture is named {', '.join(sorted(unknown))}\n")
        return 2
    expect.set_options(timeout=MILLISECONDS)
    with (
        tempfile.TemporaryDirectory() as runs,
        tempfile.TemporaryDirectory() as cache,
        tensorboard("--logdir", str(put_runs(Path(runs))), cache=Path(cache)) as address,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        for picture in chosen:
            take(browser, address, picture)
            print(picture.name, flush=True)
        browser.close()
    return 0


def take(browser: Browser, address: str, picture: Picture) -> None:
    viewport = {"width": WIDTH, "height": picture.height}
    context = browser.new_context(viewport=viewport, color_scheme="dark" if picture.theme == "dark" else "light")
    context.set_default_timeout(MILLISECONDS)
    page = context.new_page()
    page.add_init_script(f"try {{ localStorage.setItem('pytorch_profiler.theme', '{picture.theme}') }} catch {{}}")
    state = "&".join(f"p.pytorch_profiler.{key}={value}" for key, value in picture.state.items())
    page.goto(f"{address}/#pytorch_profiler&{state}")
    frame = page.frame_locator("iframe")
    expect(frame.locator("h1")).to_be_visible()
    expect(frame.locator("body")).to_contain_text(picture.shows)
    expect(frame.locator("[aria-busy=true]")).to_have_count(0)
    if picture.state["view"] == "trace":
        expect(frame.locator("[data-part=timeline][data-state=drawn]")).to_be_visible()
    frame.locator("html").evaluate(SETTLED)
    page.screenshot(path=ROOT / "docs" / "images" / f"{picture.name}.png")
    context.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
