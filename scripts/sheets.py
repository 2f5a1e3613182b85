#!/usr/bin/env python3
"""Pictures of all views of the runs of a log folder, to look at: `python -m scripts.sheets LOGDIR OUT`.

For each run, theme and width: the views in `OUT/<run>-<theme>-<width>/<view>.png`, and all of them on a contact
sheet beside that folder. A run of several workers also has `ranks`, the first of them on one timeline. Errors of a
page are printed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import Browser, Page, expect, sync_playwright

from scripts.pictures import MILLISECONDS, SETTLED
from tests.support.browser.chromium import ARGUMENTS, chromium
from tests.support.servers.tensorboard import read_json, tensorboard
from tests.support.waiting import until
from torch_tb_profiler.views import SLUGS

HEIGHT = 836
"""Of the page on a screen of 900 px, below TensorBoard's header."""
RANKS = 4
COLUMNS = 4
THUMBNAIL = 620


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.sheets", description=__doc__)
    parser.add_argument("logdir", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--runs", nargs="*", help="all, if none is named")
    parser.add_argument("--views", nargs="*", help="all, if none is named")
    parser.add_argument("--widths", nargs="*", type=int, default=[900, 1440])
    parser.add_argument("--themes", nargs="*", default=["light", "dark"])
    chosen = parser.parse_args(arguments)
    expect.set_options(timeout=MILLISECONDS)
    with (
        tempfile.TemporaryDirectory() as cache,
        tensorboard("--logdir", str(chosen.logdir), cache=Path(cache)) as address,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        plugin = f"{address}/data/plugin/pytorch_profiler"
        listed = until(lambda: read_json(f"{plugin}/runs"), lambda answer: not answer["scanning"])
        for run in [each["name"] for each in listed["runs"] if not chosen.runs or each["name"] in chosen.runs]:
            workers = [each["name"] for each in read_json(f"{plugin}/workers?run={quote(run)}")["workers"]]
            states = {
                name: state for name, state in states_of(run, workers).items() if name in (chosen.views or [name])
            }
            for theme in chosen.themes:
                for width in chosen.widths:
                    folder = chosen.out / f"{run}-{theme}-{width}"
                    folder.mkdir(parents=True, exist_ok=True)
                    take(browser, address, states, theme, width, folder)
                    put_together(browser, [folder / f"{name}.png" for name in states], folder.with_suffix(".png"))
                    print(folder.name, flush=True)
        browser.close()
    return 0


def states_of(run: str, workers: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the state in the address of each picture."""
    states = {slug: {"view": slug, "run": run} for slug in SLUGS}
    if len(workers) > 1:
        states["ranks"] = {"view": "trace", "run": run, "ranks": ",".join(map(quote, workers[:RANKS]))}
    return states


def take(
    browser: Browser, address: str, states: Mapping[str, Mapping[str, str]], theme: str, width: int, folder: Path
) -> None:
    context = browser.new_context(viewport={"width": width, "height": HEIGHT})
    context.set_default_timeout(MILLISECONDS)
    page = context.new_page()
    page.on("pageerror", lambda error: print(f"{folder.name}: {error}"))
    page.add_init_script(f"localStorage.setItem('pytorch_profiler.theme', '{theme}')")
    page.goto(f"{address}/data/plugin_entry.html?name=pytorch_profiler#pytorch_profiler")
    for name, state in states.items():
        show(page, state)
        page.screenshot(path=folder / f"{name}.png")
    context.close()


def show(page: Page, state: Mapping[str, str]) -> None:
    """Go to an address, and wait until all of it is drawn."""
    parts = [f"p.pytorch_profiler.{key}={quote(value)}" for key, value in state.items()]
    page.evaluate("hash => { location.hash = hash }", "&".join(["pytorch_profiler", *parts]))
    expect(page.locator(f"#page[data-shown='{state['view']} {state['run']}']")).to_be_visible()
    expect(page.locator("#page [aria-busy=true]")).to_have_count(0)
    if page.locator("[data-part=timeline]").count():
        expect(page.locator("[data-part=timeline][data-state=drawn]")).to_be_visible()
    page.evaluate(SETTLED)


def put_together(browser: Browser, pictures: Iterable[Path], sheet: Path) -> None:
    page = browser.new_page(viewport={"width": COLUMNS * (THUMBNAIL + 8), "height": 100})
    figures = "".join(
        f"<figure><img src='{picture.resolve().as_uri()}'><figcaption>{picture.stem}</figcaption></figure>"
        for picture in pictures
    )
    style = f"body,figure{{margin:4px}}body{{display:flex;flex-wrap:wrap}}img{{width:{THUMBNAIL - 8}px}}"
    source = sheet.with_suffix(".html")
    source.write_text(f"<style>{style}</style>{figures}")
    page.goto(source.resolve().as_uri())
    page.screenshot(path=sheet, full_page=True)
    source.unlink()
    page.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
