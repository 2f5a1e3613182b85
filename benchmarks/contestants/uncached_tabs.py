"""What the first visit of each tab of a cached trace takes by command, if nothing was prepared in the background.

    python -m benchmarks.contestants.uncached_tabs FILE --rounds 3
    python -m benchmarks.contestants.uncached_tabs FILE --before CHECKOUT

`view overview` reads the file into a cache of its own; every tab is then asked for with a copy of that cache, so
that none profits from what another left there. *Again* is the Overview from the cache: starting Python, nothing to
compute. With `--before`, the program in another checkout takes turns with this one. Seconds are of the processor,
user and system, the least and the median of the rounds; wall is the median, MB the largest resident set, mapped
columns included.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.measure import environment_after_installation
from torch_tb_profiler.cli._command import OK, TROUBLE, USAGE

TABS = (
    "operators",
    "kernels",
    "roofline",
    "trace",
    "idle",
    "critical_path",
    "modules",
    "origins",
    "distributed",
    "memory",
)
"""Tabs of a trace; one that has nothing to show is left out."""


class Visit(NamedTuple):
    """Processor seconds, wall seconds and megabytes of a command, and what it printed."""

    cpu: float
    wall: float
    mb: float
    payload: bytes


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="a trace of at least 100,000 events")
    parser.add_argument("--before", help="a compiled checkout of another version, which takes turns with this one")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tabs", nargs="*", help="all by default")
    options = parser.parse_args(arguments)
    programs = {"now": str(Path(__file__).parents[2]), **({"before": options.before} if options.before else {})}
    with tempfile.TemporaryDirectory() as folder:
        caches = {name: Path(folder) / name for name in programs}
        for name, tree in programs.items():
            cold = visit(tree, caches[name], "overview", options.file)
            print(f"{name}: overview, cold {cold.cpu:.2f} s, {cold.wall:.2f} s wall, {cold.mb:.0f} MB", flush=True)
        columns = " | ".join(f"{name} s, median | wall s | MB" for name in programs)
        print(f"| tab | {columns} | ratio | same answer |")
        print("|---|" + "---|" * (3 * len(programs) + 2))
        for tab in ("overview", *(options.tabs or TABS)):
            visits: dict[str, list[Visit]] = {name: [] for name in programs}
            for _ in range(options.rounds):
                for name, tree in programs.items():
                    copy = Path(folder) / "copy"
                    shutil.copytree(caches[name], copy, copy_function=os.link)
                    visits[name].append(visit(tree, copy, tab, options.file))
                    shutil.rmtree(copy)
            best = {name: min(rows) for name, rows in visits.items()}
            now, before = best["now"], best.get("before", best["now"])
            if not now.payload:
                continue  # the trace has nothing to show there
            cells = [
                f"{best[name].cpu:.2f}, {median(each.cpu for each in rows):.2f} | "
                f"{median(each.wall for each in rows):.2f} | {max(each.mb for each in rows):.0f}"
                for name, rows in visits.items()
            ]
            same = "yes" if now.payload == before.payload else "no"
            title = "again" if tab == "overview" else tab
            print(f"| {title} | {' | '.join(cells)} | {now.cpu / before.cpu:.2f} | {same} |", flush=True)


def visit(tree: str, cache: Path, tab: str, file: str) -> Visit:
    """Run `view TAB FILE` of the program in a checkout to its end; CalledProcessError if it crashes.

    It prints nothing of a tab for which the trace has nothing to show.
    """
    environment = {**environment_after_installation(), "PYTHONPATH": tree, "TORCH_PROFILER_CACHE_DIR": str(cache)}
    environment["TORCH_PROFILER_BACKGROUND"] = "0"
    command = [sys.executable, "-m", "torch_tb_profiler", "view", tab, file]
    with tempfile.TemporaryFile() as out:
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, env=environment, cwd=cache.parent)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in (OK, TROUBLE, USAGE):
            raise subprocess.CalledProcessError(process.returncode, command)
        out.seek(0)
        return Visit(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024, out.read())


if __name__ == "__main__":
    main()
