"""What a filter of a cached trace takes as an HTTP request, sent at once after its tab has opened.

    python -m benchmarks.contestants.filters build/five
    python -m benchmarks.contestants.filters build/five --only operators memory --rounds 5

The folder has one large trace. A TensorBoard reads it, and makes the first answers of all tabs ahead. Each filter
is then asked of a TensorBoard that has just started: the tab is opened, the filter is sent as soon as that answer
has arrived, and sent again. Printed is a Markdown table, medians of the rounds: ms until the whole body has
arrived, and ms of the server's processor meanwhile, with all that it prepares behind the tab.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import psutil

from tests.support.servers.fragile import ROUTE, Server
from tests.support.waiting import PATIENCE, until
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.cache import Cache
from torch_tb_profiler.session import open_session
from torch_tb_profiler.session.cache.entries import entry_key, result_name
from torch_tb_profiler.session.jobs import prefetched_views


class Shown(NamedTuple):
    """Stands for a value in the tab's answer, by its keys and indices: the user picks what the tab lists."""

    path: tuple[str | int, ...]

    def find(self, answer: Any) -> str:
        for key in self.path:
            answer = answer[key]
        return str(answer)


STEP = Shown(("steps", 0))
NAMED_STEP = Shown(("steps", 0, "name"))
EVENT = Shown(("rows", 0, "event"))
ALL = {"begin": "0", "end": "100000000000"}
PART = {"begin": "10000000000", "end": "20000000000"}
PAGE = {"limit": "100"}

FILTERS: tuple[tuple[str, dict[str, str | Shown]], ...] = (
    ("operators", {"phase": "backward"}),
    ("operators", {"phase": "backward", "group_by": "module"}),
    ("operators", {"group_by": "shape"}),
    ("operators", {"group_by": "signature"}),
    ("operators", {"group_by": "module"}),
    ("operators", {"group_by": "annotation"}),
    ("operators", {"step": STEP}),
    ("operators", {"thread": Shown(("threads", 0))}),
    ("operators", {"kernel": "Memset (Device)"}),
    ("operators", {"family": "matrix product"}),
    ("operators/instances", {"event": EVENT}),
    ("operators/instances", {"event": EVENT, "time": "device"}),
    ("operators/stacks", {"event": EVENT}),
    ("operators/origins", {"event": EVENT}),
    ("kernels", {"group_by": "launch"}),
    ("kernels", {"group_by": "family"}),
    ("kernels", {"step": STEP}),
    ("kernels", {"device": "0", "stream": "7"}),
    ("kernels", {"operator": "aten::mm"}),
    ("kernels", {"family": "matrix product"}),
    ("kernels", {"origin": "unknown"}),
    ("kernels/instances", {"event": EVENT}),
    ("kernels/origins", {"event": EVENT}),
    ("roofline", {"group_by": "shape"}),
    ("roofline", {"group_by": "kernel"}),
    ("roofline", {"group_by": "family"}),
    ("roofline", {"group_by": "module"}),
    ("roofline", {"step": STEP}),
    ("roofline", {"device": "0"}),
    ("roofline", {"peaks": "H100 SXM"}),
    ("trace", {"python": "true"}),
    ("trace/search", {"query": "aten::mm"}),
    ("trace/search", {"query": "aten::m+", "regex": "true"}),
    ("trace/search", {"query": "a"}),
    ("trace/search", {"query": "family:matrix product"}),
    ("trace/search", {"query": "module:Linear"}),
    ("trace/hits", {"query": "aten::mm", **ALL}),
    ("trace/hits", {"query": "aten::m+", "regex": "true", **ALL}),
    ("trace/selection", {**ALL, **PAGE}),
    ("trace/selection", {**PART, **PAGE}),
    ("trace/selection", {**PART, **PAGE, "python": "true"}),
    ("trace/headline", PART),
    ("trace/path", PART),
    ("trace/colors", {"by": "module"}),
    ("trace/tile", {**PART, "width": "1500", "color": "family"}),
    ("idle", {"by": "emptied_by"}),
    ("idle", {"by": "operator"}),
    ("idle", {"by": "module"}),
    ("idle", {"by": "frame"}),
    ("idle", {"step": NAMED_STEP}),
    ("idle", {"device": "0", "stream": "7"}),
    ("idle/gaps", {"cause": Shown(("causes", 0, "cause")), "subject": Shown(("causes", 0, "subject")), **PAGE}),
    ("idle/flame", {}),
    ("idle/launches", {}),
    ("idle/launches", {"step": NAMED_STEP}),
    ("idle/queue", {"step": NAMED_STEP}),
    ("idle/sequences", {}),
    ("critical_path", {"what_if": "operator:aten::mm:50"}),
    ("critical_path/what_if", {"target": "operator:aten::mm"}),
    ("critical_path/groups", {"by": "line"}),
    ("critical_path/groups", {"by": "module"}),
    ("critical_path/groups", {"by": "operator", "step": NAMED_STEP}),
    ("critical_path/pieces", PAGE),
    ("critical_path/pieces", {**PAGE, "step": NAMED_STEP}),
    ("modules/flame", {}),
    ("modules/flame", {"time": "device"}),
    ("modules/instances", {"place": "0", **PAGE}),
    ("modules/calls", PAGE),
    ("origins", {"first": "0", **PAGE}),
    ("origins/event", {"event": EVENT}),
    ("memory/events", PAGE),
    ("memory/events", {"search": "aten::mm", **PAGE}),
    ("memory/events", {"state": "unreleased", **PAGE}),
    ("memory/events", {"sort": "duration", **PART, **PAGE}),
    ("memory/live", {"group_by": "operator", **PAGE}),
    ("memory/live", {"group_by": "module", **PAGE}),
    ("memory/live", {"group_by": "stack", **PAGE}),
    ("memory/curve", PART),
    ("memory/operators", PART),
)
"""A view of a tab, and what a user filters it by: all that work on rows of events."""


class Exchange(NamedTuple):
    """Wall and processor ms of a request, and the bytes of its answer."""

    wall: float
    processor: float
    size: int


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="log folder with one large trace")
    parser.add_argument("--only", nargs="*", help="tabs, all by default")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cache", help="folder of the cache, which stays; by default one that is removed")
    wanted = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        cache = wanted.cache or folder
        available = read(wanted.folder, cache)
        print("| filter | at once: wall ms | processor ms | again: wall ms | processor ms | KB |")
        print("|---|---|---|---|---|---|")
        for slug, params in FILTERS:
            tab = slug.partition("/")[0]
            if tab in available and (not wanted.only or tab in wanted.only):
                rounds = [ask(wanted.folder, cache, slug, params) for _ in range(wanted.rounds)]
                cells = [
                    f"{median(each.wall for each in turn):.0f} | {median(each.processor for each in turn):.0f}"
                    for turn in zip(*rounds, strict=True)
                ]
                size = rounds[0][0].size / 1e3
                shown = "&".join(
                    f"{name}={'...' if isinstance(value, Shown) else value}" for name, value in params.items()
                )
                print(f"| {slug} {shown} | {' | '.join(cells)} | {size:.0f} |", flush=True)


def read(folder: str, cache: str) -> set[str]:
    """Let a server read the trace, and return its tabs once all first answers are cached."""
    settings = Settings(cache_dir=cache)
    server = Server(Path(folder), TORCH_PROFILER_CACHE_DIR=cache)
    server.start()
    try:
        until(lambda: server.get("view/overview")[0] == 200)
        missing = {view["slug"] for view in server.get("views")[1]["views"] if not view["available"]}
        with open_session(folder, settings) as session:
            key, entries = entry_key(session.find(None, None, None).file.id), Cache.from_settings(settings)
        slugs = prefetched_views(missing)
        for slug in slugs:
            until(lambda slug=slug: entries.has_json(key, result_name(slug, None)))
    finally:
        server.stop()
    return {slug.partition("/")[0] for slug in slugs}


def ask(folder: str, cache: str, slug: str, params: Mapping[str, str | Shown]) -> tuple[Exchange, Exchange]:
    """Open a tab in a new server and send a filter twice, at once."""
    server = Server(Path(folder), TORCH_PROFILER_CACHE_DIR=cache)
    server.start()
    try:
        process, tab = psutil.Process(server.process.pid), slug.partition("/")[0]
        opened = server.payload(tab)
        texts = {name: value.find(opened) if isinstance(value, Shown) else value for name, value in params.items()}
        address = f"{server.url}{ROUTE}/view/{slug}?{urlencode(texts)}"
        return exchange(process, address), exchange(process, address)
    finally:
        server.stop()


def exchange(process: psutil.Process, address: str) -> Exchange:
    """Send a request and read its whole answer, compressed as a browser gets it."""
    request = Request(address, headers={"Accept-Encoding": "gzip"})
    before, began = process.cpu_times(), time.perf_counter()
    with urlopen(request, timeout=PATIENCE) as answer:
        body = answer.read()
        assert answer.status == 200, answer.status
    wall, after = time.perf_counter() - began, process.cpu_times()
    return Exchange(1000 * wall, 1000 * (after.user + after.system - before.user - before.system), len(body))


if __name__ == "__main__":
    main()
