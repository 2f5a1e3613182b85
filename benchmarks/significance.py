"""How often the diff finds a change of the step, and how often one that is none.

    python -m benchmarks.significance [--draws 4000]

Steps are simulated: 100 ms with a scatter, a first step 1.6 times as long, an autocorrelation, recordings that
differ among themselves. Prints the tables of docs/definitions.md: how often each is called slower or faster.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.significance import ChangeRules, compare_steps
from torch_tb_profiler.analyses.shared.typical_steps import odd_durations
from torch_tb_profiler.model.trace import Float64

RHO, BETWEEN = 0.7, 5.0


class StepNoise(msgspec.Struct, frozen=True):
    """How steps are: scatter within and between recordings in percent, autocorrelation, first step."""

    noise: float = 1.0
    between: float = 0.0
    rho: float = 0.0
    first: float = 1.0

    def record(self, rng: np.random.Generator, draws: int, steps: int, recordings: int) -> list[Float64]:
        """Return steps in ms of each recording, float64[draws, steps]."""
        return [self._recording(rng, draws, steps) for _ in range(recordings)]

    def _recording(self, rng: np.random.Generator, draws: int, steps: int) -> Float64:
        values = rng.standard_normal((draws, steps))
        for step in range(1, steps):
            values[:, step] = self.rho * values[:, step - 1] + np.sqrt(1 - self.rho**2) * values[:, step]
        values = 100 + self.noise * values + self.between * rng.standard_normal((draws, 1))
        values[:, 0] *= self.first
        return values


def detection_rate(machine: StepNoise, change: float, draws: int, steps: int, recordings: int = 1) -> float:
    """Return the share of draws in which a candidate `change` times as long is called slower or faster."""
    rng = np.random.default_rng(steps)
    base, candidate = (machine.record(rng, draws, steps, recordings) for _ in range(2))
    hits = 0
    for draw in range(draws):
        sides = [
            _drop_odd_steps([each[draw] for each in side])
            for side in (base, [change * each for each in candidate])
        ]
        counts = [len(each) for each in sides[0]], [len(each) for each in sides[1]]
        rules = ChangeRules(step=100.0, min_effect=0.02, resolution=1e-9, recordings=counts)
        rows = [np.concatenate(side)[None, :] for side in sides]
        hits += bool(compare_steps(rows[0], rows[1], rules, alone=1).changed[0])
    return hits / draws


def _drop_odd_steps(recordings: Sequence[Float64]) -> list[Float64]:
    return [each[~odd_durations(each)] for each in recordings]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=4000)
    draws = parser.parse_args().draws
    print("| steps | nothing changed | first step 1.6x | +5% | +20%, first step 1.6x | 5% scatter: +5% | +20% |")
    print("|--:|--:|--:|--:|--:|--:|--:|")
    plain, slow_first, rough = StepNoise(), StepNoise(first=1.6), StepNoise(noise=5.0)
    for steps in (3, 5, 8, 12, 30):
        shares = [
            detection_rate(machine, change, draws, steps)
            for machine, change in (
                (rough, 1.0),
                (slow_first, 1.0),
                (plain, 1.05),
                (slow_first, 1.2),
                (rough, 1.05),
                (rough, 1.2),
            )
        ]
        print(f"| {steps} | {' | '.join(f'{share:.1%}' for share in shares)} |")
    print("\n| steps | nothing changed, autocorrelation 0.7 | +20% |\n|--:|--:|--:|")
    for steps in (5, 10, 20, 50):
        machine = StepNoise(noise=5.0, rho=RHO)
        shares = [detection_rate(machine, change, draws, steps) for change in (1.0, 1.2)]
        print(f"| {steps} | {' | '.join(f'{share:.1%}' for share in shares)} |")
    print("\n| recordings of ten steps | nothing changed, recordings differ by 5% | +20% |\n|--:|--:|--:|")
    for recordings in (1, 2, 3, 5):
        shares = [
            detection_rate(StepNoise(between=BETWEEN), change, draws, 10, recordings) for change in (1.0, 1.2)
        ]
        print(f"| {recordings} | {' | '.join(f'{share:.1%}' for share in shares)} |")


if __name__ == "__main__":
    main()
