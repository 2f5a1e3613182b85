"""How long it takes from a trace file to its Overview, beside `orjson.loads` and torch-tb-profiler 0.4.3.

To its first page, that is; what the rest takes is printed below each table.

    python -m benchmarks.load --folder build/benchmark --rounds 5

First it says whether the native reader takes part.

`command` is all of `torch-tb-profiler view overview`. With `--before PYTHON`, of an environment with another
version of this package, that version's takes part, too.

All contestants run in turn, round by round, so that what else the machine does meets them alike. Printed are
medians with their range, as a Markdown table.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from benchmarks.grow import read_recording, write_grown
from benchmarks.measure import Measurement, run

HERE = Path(__file__).resolve().parent
SAMPLE = next((HERE.parent / "samples" / "transformer").glob("*.gz"))
OLD_PLUGIN = ["torch-tb-profiler==0.4.3", "pandas", "setuptools<81"]
OLD_CATEGORIES = {"cuda_runtime": "Runtime", "fwdbwd": "forward_backward"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="for the grown files; reused when it has them")
    parser.add_argument("--sizes", type=float, nargs="+", default=[0.1, 0.5, 2.0], help="GB")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--old-up-to", type=float, default=0.5, help="largest file for the old plugin, GB")
    parser.add_argument("--orjson-up-to", type=float, default=0.5, help="largest file for orjson, GB")
    parser.add_argument("--before", help="Python of an environment with another version of this package")
    parser.add_argument("--sample", type=Path, default=SAMPLE, help="the recording that is repeated")
    wanted = parser.parse_args()
    wanted.folder.mkdir(parents=True, exist_ok=True)
    print(version(), flush=True)
    print(check_small(wanted.sample))
    old_python = make_old_environment(wanted.folder) if wanted.old_up_to else None
    for size in wanted.sizes:
        trace = grown(wanted.sample, wanted.folder, size)
        contestants = {"ours": partial(ours, trace), "command": partial(cold, sys.executable, "command.py", trace)}
        if wanted.before:
            contestants["command before"] = partial(cold, wanted.before, "command.py", trace)
        if size <= wanted.orjson_up_to:
            contestants["orjson"] = partial(contestant, sys.executable, "orjson_loads.py", trace)
        if old_python is not None and size <= wanted.old_up_to:
            contestants["old"] = partial(contestant, old_python, "old_plugin.py", for_old_plugin(trace))
        report(size, trace, measure(contestants, wanted.rounds))


def version() -> str:
    """Return the name and version of a contestant as its program says them."""
    command = [sys.executable, "-m", "torch_tb_profiler", "--version"]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=HERE).stdout.strip()


def contestant(python: str, script: str, *arguments: object) -> Measurement:
    # -E: a PYTHONPATH with this project would hide the old plugin, which has the same package name.
    isolated = [] if python == sys.executable else ["-E"]
    return run([python, *isolated, str(HERE / "contestants" / script), *map(str, arguments)])


def ours(trace: Path) -> Measurement:
    """Load a file into an empty cache; add to the facts the seconds of opening it again from there."""
    cache = tempfile.mkdtemp(dir=trace.parent)
    load = partial(contestant, sys.executable, "ours.py", trace, cache)
    try:
        first, again = load(), load()
    finally:
        shutil.rmtree(cache)
    assert again.facts["workers"] == 0, "the second load did not come from the cache"
    return Measurement({**first.facts, "reopen": again.facts["wall"]}, first.peak_mb)


def cold(python: str, script: str, trace: Path) -> Measurement:
    """Load a file into an empty cache."""
    cache = tempfile.mkdtemp(dir=trace.parent)
    try:
        return contestant(python, script, trace, cache)
    finally:
        shutil.rmtree(cache)


def check_small(trace: Path) -> str:
    """Check that a file of ordinary size is read in the process that asks for it."""
    facts = ours(trace).facts
    assert facts["workers"] == 0, "a small file started a process"
    return (
        f"{trace.stat().st_size / 1e6:.1f} MB packed: first page after {facts['wall']:.2f} s, no second process\n"
    )


def grown(sample: Path, folder: Path, size: float) -> Path:
    trace = folder / f"grown_{size:g}.json"
    if not trace.exists():
        with trace.open("w", encoding="utf-8") as out:
            write_grown(read_recording(sample), size * 1000, out)
    return trace


def for_old_plugin(trace: Path) -> Path:
    """Rewrite the file with the category names of 2021: without them the old plugin omits half of its work."""
    renamed = trace.with_suffix(".old.json")
    if not renamed.exists():
        with trace.open(encoding="utf-8") as source, renamed.open("w", encoding="utf-8") as out:
            for line in source:
                for new, old in OLD_CATEGORIES.items():
                    line = line.replace(f'"cat": "{new}"', f'"cat": "{old}"')
                out.write(line)
    return renamed


def make_old_environment(folder: Path) -> str:
    """Return the Python of a virtual environment with the old plugin."""
    place = folder / "old_plugin"
    python = place / "bin" / "python"
    if not python.exists():
        venv.create(place, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *OLD_PLUGIN], check=True)
    return str(python)


def measure(contestants: Mapping[str, Callable[[], Measurement]], rounds: int) -> dict[str, list[Measurement]]:
    results: dict[str, list[Measurement]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, contestant in contestants.items():
            results[name].append(contestant())
    return results


def report(size: float, trace: Path, results: dict[str, list[Measurement]]) -> None:
    """Print one table: a row per contestant, each ratio the median of the rounds' own ratios."""
    megabytes = trace.stat().st_size / 1e6
    events = results["ours"][0].facts["events"]
    print(f"### {size:g} GB ({megabytes:.0f} MB, {events / 1e6:.2f} M events)\n")
    print("| | wall s | user s | peak memory MB | wall, of ours | user, of orjson | memory, of the file |")
    print("|---|---|---|---|---|---|---|")
    mine = results["ours"]
    for name, runs in results.items():
        slower = _spread([r.facts["wall"] / m.facts["wall"] for r, m in zip(runs, mine, strict=True)])
        share = "-"
        if "orjson" in results:
            share = _spread(
                [r.facts["user"] / o.facts["user"] for r, o in zip(runs, results["orjson"], strict=True)]
            )
        wall, user = (_spread([r.facts[key] for r in runs]) for key in ("wall", "user"))
        peak = _spread([r.peak_mb for r in runs], digits=0)
        memory = _spread([r.peak_mb / megabytes for r in runs])
        print(f"| {name} | {wall} | {user} | {peak} | {slower} | {share} | {memory} |")
    rest = (_spread([r.facts[f"rest {key}"] for r in mine]) for key in ("wall", "user"))
    print(f"\nThe rest of the Overview, after its first page: {' s, user '.join(rest)} s.")
    print(f"Reopened from the cache: {_spread([r.facts['reopen'] for r in mine], digits=3)} s\n", flush=True)


def _spread(values: list[float], digits: int = 2) -> str:
    middle, low, high = statistics.median(values), min(values), max(values)
    return f"{middle:.{digits}f} [{low:.{digits}f}-{high:.{digits}f}]"


if __name__ == "__main__":
    main()
