"""The judge of what is said about a random job: a rule for every sentence that claims who, why or how much.

A rule is a pattern and a check of its numbers and names against the truth. A number is right within 10% and what
isn't notable (1% of a step); "at least", "at most" and "up to" are right on one side. A sentence about ranks,
waiting, stragglers or savings that no rule knows is an error: whoever writes a new one also writes what makes it
false.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.support.random_jobs.plan import SHARED_OPERATOR, JobPlan, draw_plan
from tests.support.random_jobs.truth import JobSurfaces, JobTruth
from tests.support.simulation.simulator import ODD_OPERATOR

TOLERANCE = 0.1
"""Relative error of a number that counts as right."""

NOTABLE_SHARE = 0.02
"""Share of a step from which on a planted cause must be found."""

_SLACK_SHARE = 0.01
"""Share of a step by which a number may be off in any case: launches, jitter, and rounding."""

_UNITS = {"ns": 1e-3, "µs": 1.0, "ms": 1e3, "s": 1e6}
_NUMBER = r"(?:\d[\d,.]* (?:ns|µs|ms|s))"


@dataclass(frozen=True)
class Claim:
    """A sentence that is said, and of which rank; `why` it is false."""

    seed: int
    surface: str
    rank: int
    sentence: str
    why: str

    def __str__(self) -> str:
        return f"seed {self.seed}, {self.surface}, rank {self.rank}: {self.why}\n    {self.sentence}"


@dataclass(frozen=True)
class Judgment:
    """What is false, and whether a planted cause that must be found is found (None if there is none)."""

    plan: JobPlan
    false: tuple[Claim, ...]
    sentences: int
    found: bool | None
    missed: str = ""


class _Context:
    """The truth for the rules about one rank."""

    def __init__(self, truth: JobTruth, rank: int) -> None:
        self.truth, self.plan, self.rank = truth, truth.plan, rank
        self.slack = _SLACK_SHARE * truth.step

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
    def late(self) -> int | None:
        """The rank that is planted to be late, if that costs the job anything worth naming."""
        notable = self.truth.cause_cost >= NOTABLE_SHARE / 2 * self.truth.step
        return self.plan.cause.rank if self.plan.cause is not None and notable else None


_Check = Callable[[re.Match[str], _Context], str | None]


def us(text: str) -> float:
    """Return the µs of a duration as it is written."""
    number, unit = text.replace(",", "").split(" ")
    return float(number) * _UNITS[unit]


def _first(*reasons: str | None) -> str | None:
    return next((reason for reason in reasons if reason is not None), None)


def _straggler(match: re.Match[str], context: _Context) -> str | None:
    names = {int(each) for each in re.findall(r"\d+", match["names"])}
    if names != {context.late}:
        return f"the late rank is {context.late}, not {sorted(names)}"
    cost, limit = us(match["cost"]), match["limit"]
    if limit:
        return context.at_most(cost, context.truth.cause_cost, "the cost")
    return context.close(cost, context.truth.cause_cost, "the cost")


def _judge_balance(match: re.Match[str], context: _Context) -> str | None:
    if context.truth.cause_cost < 1.2 * NOTABLE_SHARE * context.truth.step:
        return None
    rank = context.plan.cause.rank if context.plan.cause else None
    return f"rank {rank} costs {context.truth.cause_cost:.0f} of {context.truth.step:.0f} µs per step"


def _missing_suspect(match: re.Match[str], context: _Context) -> str | None:
    if not context.plan.missing:
        return "no rank is missing"
    cause = context.plan.cause
    if cause is not None and cause.rank in context.plan.missing:
        return context.at_most(us(match["cost"]), context.truth.cause_cost, "what the missing rank costs")
    return None


def _missing_straggler(match: re.Match[str], context: _Context) -> str | None:
    if context.late not in context.plan.missing:
        return "the late rank isn't missing"
    return context.at_least(us(match["cost"]), context.truth.cause_cost, "what the missing rank costs")


def _coverage(match: re.Match[str], context: _Context) -> str | None:
    compared, expected = int(match["compared"]), int(match["expected"])
    missing = {int(each) for each in re.findall(r"\d+", match["missing"] or "")}
    right = (compared, expected, missing) == (
        len(context.plan.present),
        context.plan.ranks,
        {*context.plan.missing},
    )
    return None if right else f"the missing ranks are {context.plan.missing} of {context.plan.ranks}"


def _split(match: re.Match[str], context: _Context) -> str | None:
    waiting = 0.0 if match["waiting"] == "none" else us(match["waiting"])
    transfer = us(match["transfer"])
    truth, rank = context.truth, context.rank
    if match["what"] != "exposed communication":
        total = us(match["total"])
        rest = us(match["rest"]) if match["rest"] else 0.0
        adds_up = abs(total - waiting - transfer - rest) <= 0.02 * total + context.slack
        return None if adds_up else "the parts don't add up"
    rest = us(match["rest"]) if match["rest"] else 0.0
    if rest and not context.plan.missing:
        return "all ranks were compared"
    if match["least"] or rest:
        return _first(
            context.at_least(waiting, truth.waiting(rank), "the waiting"),
            context.at_most(transfer + rest, truth.transfer(rank), "the transfer"),
        )
    return _first(
        context.close(us(match["total"]), truth.exposed(rank), "exposed communication"),
        context.close(waiting, truth.waiting(rank), "the waiting"),
        context.close(transfer, truth.transfer(rank), "the transfer"),
        _check_awaited_rank(match["awaited"], context),
    )


def _check_awaited_rank(awaited: str | None, context: _Context) -> str | None:
    """Check for whom a rank waits: that who is planted late is named first, if most of the waiting is for it."""
    if not awaited or context.late is None or context.late == context.rank or context.plan.missing:
        return None
    first = re.search(r"for rank (\d+)", awaited)
    mostly = context.truth.cause_cost > 0.7 * context.truth.waiting(context.rank)
    synchronous = all(len(group) == context.plan.ranks for group in context.truth.groups)
    if first and mostly and synchronous and int(first[1]) != context.late:
        return f"it waits for rank {context.late}"
    return None


def _unknown_split(match: re.Match[str], context: _Context) -> str | None:
    return None if context.plan.missing else "no rank is missing"


def _waiting_share(match: re.Match[str], context: _Context) -> str | None:
    said = float(match["share"]) / 100 * context.truth.typical_step
    true = context.truth.waiting(context.rank)
    return (context.at_least if match["least"] else context.close)(said, true, "the waiting")


def _kernels_twice_as_fast(match: re.Match[str], context: _Context) -> str | None:
    true = context.truth.step - context.truth.with_kernels(0.5)
    return context.at_least(us(match["now"]) - us(match["then"]), true, "what faster kernels save")


def _kernels_save(match: re.Match[str], context: _Context) -> str | None:
    true = context.truth.step - context.truth.with_kernels(0.5)
    return context.at_least(us(match["saved"]), true, "what faster kernels save")


def _host_twice_as_fast(match: re.Match[str], context: _Context) -> str | None:
    true = context.truth.step - context.truth.with_host(0.5)
    return context.at_least(us(match["now"]) - us(match["then"]), true, "what faster host code saves")


def _find_straggler(match: re.Match[str], context: _Context) -> str | None:
    """Judge who is late: a rank's file alone may only guess, beside the others it is known."""
    return "nobody is late" if len(context.plan.present) > 1 and context.late is None else None


def _network_at_most(match: re.Match[str], context: _Context) -> str | None:
    true = context.truth.step - context.truth.with_transfers(0.001)
    return context.at_most(us(match["saved"]), true, "what a faster network saves")


def _network_twice(match: re.Match[str], context: _Context) -> str | None:
    true = context.truth.step - context.truth.with_transfers(0.5)
    return context.at_least(us(match["now"]) - us(match["then"]), true, "what a faster network saves")


_WORK_NAMES = {
    "host": "prepare_batch",
    "frame": "prepare_batch|aten::sort",
    "loading": "DataLoader|the data loader|load data|loading data",
    "work": "extra_expert",
}
"""Kind of cause -> what names it."""


def _cause_name(match: re.Match[str], context: _Context) -> str | None:
    """Check what a late rank spends its time on."""
    cause = context.plan.cause
    if cause is None or int(match["rank"]) != cause.rank:
        return "that rank isn't planted to be late"
    if cause.kind not in _WORK_NAMES:
        return f"its device is {cause.factor:.2f} times as slow"
    if not re.search(_WORK_NAMES[cause.kind], match["name"]):
        return f"it is {_WORK_NAMES[cause.kind]}"
    loads = cause.kind == "loading" and context.plan.shared is not None and context.plan.shared[0] == "loading"
    shared = context.plan.shared[1] if loads and context.plan.shared is not None else 0.0
    return context.close(us(match["time"]), cause.us + shared, "the time")


def _slower_device(match: re.Match[str], context: _Context) -> str | None:
    cause = context.plan.cause
    if cause is None or cause.kind != "device" or int(match["rank"]) != cause.rank:
        return "no device is slower"
    ratio = float(match["ratio"])
    return None if abs(ratio - cause.factor) <= 0.05 * cause.factor else f"it is {cause.factor:.2f} times as slow"


def _late_advice(match: re.Match[str], context: _Context) -> str | None:
    named = context.rank if match["name"] == "this rank" else int(re.findall(r"\d+", match["name"])[0])
    if named != context.late:
        return f"the late rank is {context.late}"
    return context.at_most(us(match["gain"]), context.truth.cause_cost, "the gain")


def _nobody_late(match: re.Match[str], context: _Context) -> str | None:
    return _judge_balance(match, context)


def _shared_advice(match: re.Match[str], context: _Context) -> str | None:
    """Check advice on what all ranks do: its gain bounds from above what the job without it saves."""
    if context.plan.shared is None:
        return f"no rank runs {SHARED_OPERATOR}"
    return context.at_most(us(match["gain"]), context.truth.shared_cost, "the gain")


def _true(match: re.Match[str], context: _Context) -> str | None:
    return None


_PER_STEP = r"(?:per step)"
RULES: tuple[tuple[str, _Check], ...] = (
    (
        r"(?P<names>Ranks? [\d, and]+)(?: of \S+)? (?:is a straggler|are stragglers): .*costs? (?:every|the) "
        rf"other rank (?P<limit>up to )?(?P<cost>{_NUMBER}) per step\.",
        _straggler,
    ),
    (
        r"(?:The ranks are balanced; no straggler|The \d+ ranks found are balanced; no straggler among them)\.",
        _judge_balance,
    ),
    (
        r"Ranks? .* may be (?:a straggler|stragglers) \(.*\), but \d+ steps? (?:aren't|isn't) enough to tell\.",
        _true,
    ),
    (
        r"(?:A rank|Ranks? [\d, ]+) may be (?:the straggler|stragglers), but .* spend up to "
        rf"(?P<cost>{_NUMBER}) per step waiting for (?:it|them)\.",
        _missing_suspect,
    ),
    (
        r"The straggler's trace is missing: all ranks found here wait for it, at least "
        rf"(?P<cost>{_NUMBER}) per step\.",
        _missing_straggler,
    ),
    (
        r"(?P<compared>\d+) of (?P<expected>\d+) ranks? (?:was|were) compared; the traces? of ranks? "
        r"(?P<missing>[\d, -]+) (?:is|are) missing\.",
        _coverage,
    ),
    (
        r"Only \d+ of \d+ ranks were found, too few to name a straggler\.|Only rank \d+ was found\.|"
        r"Add the other .*",
        _true,
    ),
    (
        rf"Of (?P<total>{_NUMBER}) of (?P<what>[a-z ]+), (?P<least>at least )?(?P<waiting>none|{_NUMBER}) is "
        rf"spent waiting for other ranks(?P<awaited> \([^)]*\))? and (?:at most )?(?P<transfer>{_NUMBER}) "
        rf"transferring data(?:; (?P<rest>{_NUMBER}) can't be compared with another rank)?"
        r"(?:; waiting for missing ranks counts as transfer)?\.",
        _split,
    ),
    (
        rf"How much of {_NUMBER} of .* is waiting for other ranks is unknown, because ranks are missing\.",
        _unknown_split,
    ),
    (
        r"(?P<least>At least )?(?P<share>[\d.]+)% of (?:an average|a typical) step is waiting for other "
        r"ranks[;.].*",
        _waiting_share,
    ),
    (
        rf"Making them twice as fast would cut the step from (?P<now>{_NUMBER}) to (?P<then>{_NUMBER})\.",
        _kernels_twice_as_fast,
    ),
    (rf"Kernels twice as fast would save (?P<saved>{_NUMBER})\.", _kernels_save),
    (rf"A faster network would save at most (?P<saved>{_NUMBER})\.", _network_at_most),
    (
        rf"Making communication twice as fast would cut the step from (?P<now>{_NUMBER}) to (?P<then>{_NUMBER})\.",
        _network_twice,
    ),
    (
        rf"Before it arrives, rank (?P<rank>\d+)(?:'s (?:host|device))? spends (?P<time>{_NUMBER}) per step in "
        r"(?P<name>[^;]+);.*",
        _cause_name,
    ),
    (
        r"Rank (?P<rank>\d+) has a slower device: the same kernels take (?P<ratio>[\d.]+) × as long as .*",
        _slower_device,
    ),
    (rf"Find out why (?P<name>.+) (?:is|are) late: saves up to (?P<gain>{_NUMBER}),.*", _late_advice),
    (rf"Look into {SHARED_OPERATOR}: saves up to (?P<gain>{_NUMBER}),.*", _shared_advice),
    (r"No delay is attributed to any rank\.|Differences between the ranks cost .*", _true),
    (r"Rank \d+ costs (?:the others most:|the other rank) .*", _true),
    (r"(?:By operator|Of the ranks that were found|No delay is attributed to the ranks that were found).*", _true),
    (
        r"(?:Ranks? |The (?:other )?\d+ ranks )[\d, and]*spends? [\d.]+% of .* in (?:exposed )?communication.*",
        _true,
    ),
    (r".* is bound by other ranks: [\d.]+% of its critical path is waiting for other ranks\.", _true),
    (r"The largest part of the critical path of .* is waiting for other ranks \([\d.]+%\)\.", _true),
    (r"Start here: .*", _true),
    (
        rf"Making host code twice as fast would cut the step from (?P<now>{_NUMBER}) to (?P<then>{_NUMBER})\.",
        _host_twice_as_fast,
    ),
    (r"Find the straggler: .*", _find_straggler),
    (r".*including any waiting for other ranks\.", _true),
    (r"A faster network wouldn't help\.|Faster work on this rank alone would only make it wait longer\.", _true),
)
"""(pattern of a whole sentence, what makes it false); `_true` has nothing that the other rules don't check."""

_COUNTING_SURFACES = (
    "distributed", "critical_path/ranks", "overview/ranks", "idle/ranks", "critical_path/beside", "summary",
)  # fmt: skip
"""What says how many of how many ranks were compared."""

_COMPILED = [(re.compile(pattern, re.DOTALL), check) for pattern, check in RULES]
_CLAIMS = re.compile(r"\b(rank|ranks|waiting for other|straggler|network|twice as fast)\b")
"""What makes a sentence one that needs a rule."""

_END = re.compile(r"(?<=[.])\s+(?=[A-Z0-9])")


def split_sentences(text: str) -> list[str]:
    """Split a text at full stops before a capital letter."""
    return [each for each in _END.split(text) if each]


def _judge_sentence(sentence: str, context: _Context) -> str | None:
    for pattern, check in _COMPILED:
        match = pattern.fullmatch(sentence)
        if match is not None:
            return check(match, context)
    return "no rule knows this sentence" if _CLAIMS.search(sentence) else None


def judge_job(seed: int) -> Judgment:
    """Draw the job of a seed and judge what every surface says of it, for a late rank and another one."""
    plan = draw_plan(seed)
    truth = JobTruth(plan, plan.simulation.run())
    surfaces = JobSurfaces(truth)
    false, count = [], 0
    texts = list(surfaces.sentences((rank, surfaces.worker(truth, rank)) for rank in _chosen_ranks(plan)))
    for surface, rank, text in texts:
        context = _Context(truth, rank)
        for sentence in [text] if surface in ("advice", "idle table") else split_sentences(text):
            count += 1
            why = _judge_sentence(sentence, context)
            if why is not None:
                false.append(Claim(seed, surface, rank, sentence, why))
    false += _silent(plan, texts)
    everything = " ".join(text for _, _, text in texts)
    missed = list(_find_missed_causes(truth, everything))
    planted = _is_notable(truth.cause_cost, truth) or _is_notable(truth.shared_cost, truth)
    return Judgment(plan, tuple(false), count, not missed if planted else None, "; ".join(missed))


def _silent(plan: JobPlan, texts: list[tuple[str, int, str]]) -> Iterator[Claim]:
    """Yield the surfaces that don't say how many of how many ranks were compared although some are missing."""
    surfaces = dict.fromkeys(surface for surface, *_ in texts if surface in _COUNTING_SURFACES)
    for surface in surfaces if plan.missing else ():
        said = " ".join(text for each, _, text in texts if each == surface)
        if not re.search(rf"\b{len(plan.present)} of {plan.ranks} ranks|Only rank \d+ was found", said):
            yield Claim(plan.seed, surface, plan.present[0], said, "it doesn't say how many ranks were compared")


def _chosen_ranks(plan: JobPlan) -> Iterator[int]:
    """Yield a rank that isn't planted to be late, and the one that is."""
    late = plan.cause.rank if plan.cause is not None else None
    yield from [rank for rank in plan.present if rank != late][:1]
    if late in plan.present:
        yield plan.present[plan.present.index(late)]


def _is_notable(cost: float, truth: JobTruth) -> bool:
    return cost >= 1.1 * NOTABLE_SHARE * truth.step


def _find_missed_causes(truth: JobTruth, said: str) -> Iterator[str]:
    """Yield the planted causes that no surface names."""
    plan = truth.plan
    if plan.cause is not None and _is_notable(truth.cause_cost, truth):
        rank = plan.cause.rank
        named = re.search(rf"Ranks? [\d, and]*\b{rank}\b[\d, and]*(?: of \S+)? (?:is a|are|may be)", said)
        hidden = rank in plan.missing and re.search(
            r"may be (?:the )?straggler|straggler's trace is missing", said
        )
        work = re.search(_WORK_NAMES.get(plan.cause.kind, "^$"), said)
        if not (named or hidden or work) and len(plan.present) > 1:
            yield f"rank {rank} ({plan.cause.kind}) costs {truth.cause_cost:.0f} of {truth.step:.0f} µs"
    if plan.shared is not None and _is_notable(truth.shared_cost, truth):
        name = SHARED_OPERATOR if plan.shared[0] == "host" else r"data load|loads? data|DataLoader|[Ll]oader"
        if not re.search(name, said):
            yield f"{plan.shared[0]} of all ranks costs {truth.shared_cost:.0f} of {truth.step:.0f} µs"
    if plan.odd is not None and ODD_OPERATOR not in said:
        yield f"step {plan.odd[0] + 1} takes {plan.odd[1]:.0f} µs more"
