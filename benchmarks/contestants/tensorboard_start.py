"""How much later TensorBoard answers its first request with this plugin than without it.

    python -m benchmarks.contestants.tensorboard_start [--rounds 15]

Each start is a process of its own; those with and those without the plugin take turns, in the same environment:
the difference is the plugin's. Wall time begins before TensorBoard is imported and ends when the first request is
answered; processor time is that of the process until then, all threads included. The log folder is empty. From an
editable installation, importing the package takes longer than from a wheel.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.metadata import entry_points
from statistics import median
from urllib.request import urlopen

PACKAGE = "torch_tb_profiler"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--one", choices=("with", "without"), help=argparse.SUPPRESS)
    parser.add_argument("--logdir", help=argparse.SUPPRESS)
    wanted = parser.parse_args(arguments)
    if wanted.one:
        print(json.dumps(start(wanted.one == "with", wanted.logdir)), flush=True)
        return
    samples: dict[str, list[tuple[float, float]]] = {"without": [], "with": []}
    with tempfile.TemporaryDirectory() as logdir:
        for number in range(wanted.rounds):
            for which in samples if number % 2 else reversed(samples):
                samples[which].append(_time_start(which, logdir))
    print("| TensorBoard | wall ms: least, median | processor ms: least, median |\n|---|---|---|")
    figures = {
        which: [_least_and_median(times) for times in zip(*rows, strict=True)] for which, rows in samples.items()
    }
    figures["later by"] = [
        (of[0] - without[0], of[1] - without[1])
        for of, without in zip(figures["with"], figures["without"], strict=True)
    ]
    for which, columns in figures.items():
        print(f"| {which} | {' | '.join(f'{least:.0f}, {middle:.0f}' for least, middle in columns)} |")


def _least_and_median(seconds: Sequence[float]) -> tuple[float, float]:
    return 1000 * min(seconds), 1000 * median(seconds)


def _time_start(which: str, logdir: str) -> tuple[float, float]:
    command = [
        sys.executable,
        "-m",
        "benchmarks.contestants.tensorboard_start",
        "--one",
        which,
        "--logdir",
        logdir,
    ]
    wall, processor, loaded = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    assert loaded == (which == "with"), f"{which} the plugin, and yet it is {'' if loaded else 'not '}there"
    return wall, processor


def start(with_plugin: bool, logdir: str) -> tuple[float, float, bool]:
    """Return wall and CPU seconds until the first answer, and whether this package was imported by then."""
    began, before = time.perf_counter(), time.process_time()
    from tensorboard import default, program

    plugins = default.get_static_plugins()
    for point in entry_points(group="tensorboard_plugins"):
        if with_plugin or not point.value.startswith(PACKAGE):
            plugins.append(point.load())
    server = program.TensorBoard(plugins=plugins)
    server.configure(argv=["", "--logdir", logdir, "--port", "0", "--load_fast", "false"])
    url = server.launch()
    with urlopen(f"{url}data/environment") as answer:
        answer.read()
    return time.perf_counter() - began, time.process_time() - before, PACKAGE in sys.modules


if __name__ == "__main__":
    main()
