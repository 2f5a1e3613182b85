"""What the tabs of a cached trace take to open in a server that has just started, and its tables to be filtered.

    python -m benchmarks.timeline --events 5000000 --write build/five/run/worker.pt.trace.json
    python -m benchmarks.contestants.cached_tabs build/five

The trace is read first, and what a server makes ahead is waited for. Printed is a Markdown table with ms of wall
and of processor time per question. A table is filtered once what that takes has been derived behind its tab (that
time has a row, too); *at once* does not wait for it.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import floor, log2

from tests.support.waiting import until
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.session import Root, Session
from torch_tb_profiler.session.jobs import prefetched_views
from torch_tb_profiler.views import all_views

PIXELS = 1000
"""Width of the timeline on a page 1,440 wide."""

FILTERED: tuple[tuple[str, dict[str, str]], ...] = (
    ("operators", {"phase": "backward"}),
    ("operators", {"group_by": "shape"}),
    ("kernels", {"group_by": "launch"}),
)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="log folder with one large trace")
    wanted = parser.parse_args(arguments)
    all_views()  # a server has imported them before anybody asks
    with tempfile.TemporaryDirectory() as cache:
        settings = replace(Settings.from_environment(), cache_dir=cache)
        slugs = read(wanted.folder, settings)
        print("| question | wall ms | processor ms | KB |\n|---|---|---|---|")
        with start_server(wanted.folder, settings) as session:
            for slug in slugs:
                if "/" not in slug:
                    ask(session, slug, slug)
            first_picture(session)
            wait_for_preparation()
        with start_server(wanted.folder, settings) as session:
            ask(session, "operators", "operators")
            ask(session, "operators, filtered at once", *FILTERED[0])
        with start_server(wanted.folder, settings) as session:
            ask(session, "operators", "operators")
            ask(session, "kernels", "kernels")
            began = time.perf_counter()
            wait_for_preparation()
            print(f"| derived behind both | {1000 * (time.perf_counter() - began):.0f} | | |")
            for slug, params in FILTERED:
                ask(session, f"{slug}, filtered: {params}", slug, params)
                ask(session, f"{slug}, again", slug, params)


def start_server(folder: str, settings: Settings) -> Session:
    session = Session([Root(folder)], settings)
    session.start()
    until(lambda: session.scanned)
    first = session.view("overview/preview", wait=True)
    assert first.payload is not None, first.state
    return session


def read(folder: str, settings: Settings) -> list[str]:
    """Return the views whose answers are prefetched for this trace, once all are cached."""
    with start_server(folder, settings) as session:
        file = session.find(None, None, None).file.id
        missing = session.unavailable(session.find(None, None, None)) or {}
        slugs = list(prefetched_views(missing.keys()))
        until(lambda: all(session._files.result(file, slug, None) is not None for slug in slugs))
    return slugs


def first_picture(session: Session) -> None:
    """Request the tiles and counters that a page of usual width asks for."""
    answer = session.view("trace").payload
    assert answer is not None
    trace = json.loads(answer)
    begin, end = trace["first_begin_ns"], trace["first_end_ns"]
    length = 1024 * 2 ** floor(log2(1.04 * (end - begin) / PIXELS))
    for part in ("tile", "counters"):
        for at in range(begin // length, end // length + 1):
            window = {"begin": str(at * length), "end": str((at + 1) * length), "width": "1024"}
            ask(session, f"timeline, {part} {at}", f"trace/{part}", window)


def ask(session: Session, name: str, slug: str, params: Mapping[str, str] | None = None) -> None:
    wall, processor = time.perf_counter(), time.process_time()
    payload = session.view(slug, params=params).payload
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    assert payload is not None, name
    print(f"| {name} | {1000 * wall:.1f} | {1000 * processor:.1f} | {len(payload) / 1e3:.0f} |", flush=True)


def wait_for_preparation() -> None:
    for thread in threading.enumerate():
        if thread.name == "profiler-prepare":
            thread.join()


if __name__ == "__main__":
    main()
