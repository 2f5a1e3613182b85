"""An example of docs/tours/one_gpu.md: find that data loading is the bottleneck, fix it, check that it is gone.

    python examples/fix_data_loading.py --logdir log

Trains twice, without and with worker processes, and reads both traces with the Python API.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import torch_tb_profiler


def data_loading_share(logdir: Path) -> tuple[float, float]:
    """Return (average step in ms, fraction of it spent waiting for data)."""
    with torch_tb_profiler.open(str(logdir)) as log:
        average = log.run().overview().data.average
    return average.duration_ns / 1e6, average.categories.dataloader / average.duration_ns


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logdir", type=Path, default=Path("log"))
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    script = Path(__file__).with_name("train_vision.py")
    for name, workers in (("data_loading_slow", 0), ("data_loading_fixed", options.workers)):
        logdir = options.logdir / name
        subprocess.run(
            [sys.executable, str(script), "--logdir", str(logdir), "--workers", str(workers)], check=True
        )
        step, share = data_loading_share(logdir)
        print(f"{name}: an average step takes {step:.1f} ms, {share:.0%} of it waiting for data")


if __name__ == "__main__":
    main()
