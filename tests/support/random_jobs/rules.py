"""What a rule about sentences has: the truth of one rank, and comparisons with a tolerance.

A number is right within 10% and what isn't notable (1% of a step); "at least", "at most" and "up to" are right on
one side.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from tests.support.random_jobs.plan import SHARED_LOADER
from tests.support.random_jobs.truth import JobTruth

TOLERANCE = 0.1
"""Relative error of a number that counts as right."""

NOTABLE_SHARE = 0.02
"""Share of a step from which on a planted cause must be found."""

_SLACK_SHARE = 0.01
"""Share of a step by which a number may be off in any case: launches, jitter, and rounding."""

_UNITS = {"ns": 1e-3, "µs": 1.0, "ms": 1e3, "s": 1e6}
NUMBER = r"(?:\d[\d,.]* (?:ns|µs|ms|s))"
SHARE = r"(?:[\d.]+%|<0\.1%)"
BASE = r"(?:an average|a typical|the) step"


class Context:
    """The truth for the rules about one rank.

    odd  the steps that are said to be odd (which is judged, too) or planted; averages are over the others
    odd_of  likewise, of each rank
    slower  ranks whose devices are said to be slower
    """

    def __init__(
        self,
        truth: JobTruth,
        rank: int,
        odd: frozenset[int] = frozenset(),
        odd_of: Mapping[int, frozenset[int]] | None = None,
        slower: frozenset[int] = frozenset(),
    ) -> None:
        self.slower = slower
        self.truth, self.plan, self.rank = truth, truth.plan, rank
        self.odd = odd | {*truth.planted_odd, *truth.left_out(rank)}
        self._odd_of = odd_of or {}
        self.typical = truth.typical(rank, self.odd)
        self.slack = _SLACK_SHARE * truth.step

    def on_device(self, device: int) -> Context:
        """Return the truth about one device of the rank's process."""
        return Context(self.truth.on_device(device), self.rank, self.odd, self._odd_of, self.slower)

    def odd_of(self, rank: int) -> frozenset[int]:
        """Return the odd steps of any rank."""
        return self._odd_of.get(rank, self.odd) | {*self.truth.planted_odd, *self.truth.left_out(rank)}

    @property
    def usual_steps(self) -> list[float]:
        """Return the µs of each step of the rank that isn't odd."""
        times = self.truth.durations(self.rank)
        return [time for number, time in enumerate(times) if number not in self.odd]

    def over_typical_steps(self, cost: float) -> float:
        """Return a cost of lateness at times per step that isn't said to be odd, which may be one without a delay.

        The truth is a mean over all steps but those that are planted to be odd: these are not left out twice.
        """
        counted = self.truth.steps - len(self.truth.planted_odd)
        return cost * counted / (self.truth.steps - len(self.odd))

    def close(self, said: float, true: float, what: str) -> str | None:
        """Return why a number is wrong, or None."""
        if abs(said - true) <= TOLERANCE * abs(true) + self.slack:
            return None
        return f"{what} is {true:.0f} µs, not {said:.0f}"

    def at_least(self, said: float, true: float, what: str) -> str | None:
        return (
            None
            if said <= true * (1 + TOLERANCE) + self.slack
            else f"{what} is only {true:.0f} µs, not {said:.0f}"
        )

    def at_most(self, said: float, true: float, what: str) -> str | None:
        return (
            None
            if said >= true * (1 - TOLERANCE) - self.slack
            else f"{what} is even {true:.0f} µs, not {said:.0f}"
        )

    @property
    def late(self) -> set[int]:
        """Return the ranks that are planted to be late in every step, if that costs the job enough to be named."""
        notable = self.truth.cause_cost >= NOTABLE_SHARE / 2 * self.truth.step
        return {*self.plan.late} if notable else set()


Check = Callable[[re.Match[str], Context], str | None]


def us(text: str) -> float:
    """Return the µs of a duration as it is written."""
    number, unit = text.replace(",", "").split(" ")
    return float(number) * _UNITS[unit]


def first_reason(*reasons: str | None) -> str | None:
    return next((reason for reason in reasons if reason is not None), None)


def ratio(text: str) -> float:
    """Return the share of a percentage as it is written."""
    return float(text.removeprefix("<").removesuffix("%")) / 100


def nothing_else(match: re.Match[str], context: Context) -> str | None:
    """Accept a sentence that claims nothing beyond what the rules of its neighbors check."""
    return None


def simulated_name(name: str) -> str | None:
    """Return what the simulation calls it; None for what contains more than one thing."""
    if re.search("[Dd]ata loading|DataLoader", name):
        return SHARED_LOADER
    if name == "All communication":
        return "communication"
    frame = re.fullmatch(r"(?:/job/train\.py\(\d+\): )?(?P<name>[\w:]+)(?: \(train\.py:\d+\))?", name)
    return frame["name"] if frame else None
