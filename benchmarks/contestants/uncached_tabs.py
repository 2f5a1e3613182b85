"""What the first visit of each tab of a cached trace takes by command, if nothing was prepared in the background.

    python -m benchmarks.contestants.uncached_tabs FILE --rounds 3
    python -m benchmarks.contestants.uncached_tabs FILE --before CHECKOUT

`view overview` reads the file into a cache of its own; every tab is then asked for with a copy of that cache, so
that none profits from what another left there. *Again* is the Overview from the cache: starting Python, nothing to
compute. With `--before`, the program in another checkout takes turns with this one. Seconds are of the processor,
MB the largest resident set, mapped columns included.
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
from typing import NamedTuple

TABS = ("operators", "kernels", "roofline", "trace", "idle", "critical_path", "origins")


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
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    programs = {"now": str(Path(__file__).parents[2]), **({"before": options.before} if options.before else {})}
    with tempfile.TemporaryDirectory() as folder:
        caches = {name: Path(folder) / name for name in programs}
        for name, tree in programs.items():
            cold = visit(tree, caches[name], "overview", options.file)
            print(f"{name}: overview, cold {cold.cpu:.2f} s, {cold.wall:.2f} s wall, {cold.mb:.0f} MB", flush=True)
        print("| tab | " + " | ".join(f"{name} s | wall s | MB" for name in programs) + " | ratio | same answer |")
        print("|---|" + "---|" * (3 * len(programs) + 2))
        for tab in ("overview", *TABS):
            best: dict[str, Visit] = {}
            for _ in range(options.rounds):
                for name, tree in programs.items():
                    copy = Path(folder) / "copy"
                    shutil.copytree(caches[name], copy, copy_function=os.link)
                    found = visit(tree, copy, tab, options.file)
                    shutil.rmtree(copy)
                    best[name] = min(best.get(name, found), found)
            cells = [f"{each.cpu:.2f} | {each.wall:.2f} | {each.mb:.0f}" for each in best.values()]
            now, before = best["now"], best.get("before", best["now"])
            same = "yes" if now.payload == before.payload else "no"
            title = "again" if tab == "overview" else tab
            print(f"| {title} | {' | '.join(cells)} | {now.cpu / before.cpu:.2f} | {same} |", flush=True)


def visit(tree: str, cache: Path, tab: str, file: str) -> Visit:
    """Run `view TAB FILE` of the program in a checkout to its end; CalledProcessError if it fails."""
    environment = {**os.environ, "PYTHONPATH": tree, "TORCH_PROFILER_CACHE_DIR": str(cache)}
    environment["TORCH_PROFILER_BACKGROUND"] = "0"
    command = [sys.executable, "-m", "torch_tb_profiler", "view", tab, file]
    with tempfile.TemporaryFile() as out:
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, env=environment, cwd=cache.parent)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)
        out.seek(0)
        return Visit(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024, out.read())


if __name__ == "__main__":
    main()
