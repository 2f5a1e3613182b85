"""The judge of what is said about a random job: a rule for every sentence that claims who, why or how much.

A rule is a pattern and a check of its numbers and names against the truth. A sentence about steps, ranks, waiting,
or savings that no rule knows is an error: whoever writes a new one also writes what makes it false.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.support.random_jobs.cause_rules import CAUSE_RULES, WORK_NAMES
from tests.support.random_jobs.device_rules import DEVICE_RULES
from tests.support.random_jobs.diff_rules import judge_diff
from tests.support.random_jobs.idle_rules import IDLE_RULES
from tests.support.random_jobs.peak_rules import PEAK_RULES
from tests.support.random_jobs.plan import SHARED_OPERATOR, JobPlan
from tests.support.random_jobs.row_rules import judge_job_rows, judge_rank_rows
from tests.support.random_jobs.rules import NOTABLE_SHARE, Context
from tests.support.random_jobs.step_rules import STEP_RULES
from tests.support.random_jobs.straggler_rules import STRAGGLER_RULES
from tests.support.random_jobs.surfaces import JobSurfaces
from tests.support.random_jobs.truth import JobTruth
from tests.support.random_jobs.variants import draw_job
from tests.support.random_jobs.waiting_rules import WAITING_RULES
from tests.support.random_jobs.what_if_rules import WHAT_IF_RULES
from tests.support.simulation.simulator import BETWEEN_OPERATOR, ODD_OPERATOR


@dataclass(frozen=True)
class FalseSentence:
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
    false: tuple[FalseSentence, ...]
    sentences: int
    found: bool | None
    missed: str = ""


MIN_OUTSIDE_SHARE = 0.06
"""Share of all steps from which on time outside of them must be found."""

_COUNTING_SURFACES = (
    "distributed", "critical_path/ranks", "overview/ranks", "idle/ranks", "critical_path/beside", "summary",
)  # fmt: skip
"""What says how many of how many ranks were compared."""

_RULES = (
    STRAGGLER_RULES, CAUSE_RULES, WAITING_RULES, WHAT_IF_RULES, IDLE_RULES, DEVICE_RULES, PEAK_RULES, STEP_RULES,
)  # fmt: skip
_COMPILED = [(re.compile(pattern, re.DOTALL), check) for rules in _RULES for pattern, check in rules]
_CLAIMS = re.compile(
    r"\b(?:ranks?|waiting for other|straggler|network|twice as fast|saves?|idle|busy|bound|steps?|critical path)\b"
)
"""What makes a sentence one that needs a rule."""

_EXPLAINS = re.compile(
    r"reasons|limits|gains|no_advice|health|table$|problems|averages|\.(?:title|why|label|name)"
)
"""Fields that say what isn't known and why, or titles; what a rule knows of them is judged all the same."""

_SHARED_NAMES = {
    "host": SHARED_OPERATOR,
    "loading": r"data load|loads? data|DataLoader|[Ll]oader",
    "allocator": "calls that allocate or free driver memory",
    "copies": r"copies from pageable memory|wait for copies|Copies of \d+ ranks take",
}
"""What all ranks do -> what names it."""

_END = re.compile(r"(?<=[.])\s+(?=\S)")

_UNKNOWN = "no rule knows this sentence"

_ODD_STEP = re.compile(r"Steps? ([\d, and]+) takes? \S+ \S+ (?:to \S+ \S+ )?(?:more|less)\b")


def split_sentences(text: str) -> list[str]:
    """Split a text at full stops before a space."""
    return [each for each in _END.split(text) if each]


def judge_sentence(sentence: str, context: Context, surface: str = "") -> str | None:
    """Return why a sentence is false, or None."""
    named = re.search(r"\bGPU (\d)\b", sentence)
    if named or surface.startswith("idle"):  # Idle time is of one device
        context = context.on_device(int(named[1]) if named else 0)
    for pattern, check in _COMPILED:
        match = pattern.fullmatch(sentence)
        if match is not None:
            return check(match, context)
    return _UNKNOWN if _CLAIMS.search(sentence) else None


def _said_to_be_odd(texts: Sequence[tuple[str, int, str]]) -> dict[int, frozenset[int]]:
    """Return the steps of each rank that are said to be odd: averages are over the others, if that is true."""
    odd: dict[int, frozenset[int]] = {}
    for surface, rank, text in texts:
        if surface.startswith(("summary", "advice")):
            continue  # they say less of each rank than the views
        odd[rank] = odd.get(rank, frozenset()) | {
            int(step) - 1 for steps in _ODD_STEP.findall(text) for step in re.findall(r"\d+", steps)
        }
    return odd


def judge_job(seed: int) -> Judgment:
    """Draw the job of a seed and judge what every surface says of it, for a late rank and another one."""
    plan = draw_job(seed)
    truth = JobTruth.of(plan)
    surfaces = JobSurfaces(truth)
    false, count = [], 0
    texts = list(surfaces.sentences((rank, surfaces.worker(truth, rank)) for rank in _looked_at(plan)))
    odd = {rank: surfaces.odd_steps(truth, rank) for rank in plan.present} | _said_to_be_odd(texts)
    slower = frozenset(
        int(number)
        for _, _, text in texts
        for ranks in re.findall(r"Ranks ([\d, and]+) have slower devices", text)
        for number in re.findall(r"\d+", ranks)
    )
    for surface, rank, text in texts:
        context = Context(truth, rank, odd[rank], odd, slower)
        if text.endswith("…"):
            continue  # the summary cuts long sentences, which the views say as a whole
        for sentence in [text] if surface in ("advice", "idle table") else split_sentences(text):
            count += 1
            why = judge_sentence(sentence, context, surface)
            if why == _UNKNOWN and _EXPLAINS.search(surface):
                continue
            if why is not None:
                false.append(FalseSentence(seed, surface, rank, sentence, why))
    contexts = {rank: Context(truth, rank, odd[rank], odd) for rank in plan.present}
    for table, rank, row, why in _rows(surfaces, plan, truth, contexts):
        count += 1
        if why is not None:
            false.append(FalseSentence(seed, f"{table} row", rank, row, why))
    rank = list(_looked_at(plan))[-1]
    for sentence, why in judge_diff(truth, rank, surfaces.trace(truth, rank)):
        count += 1
        if why is not None:
            false.append(FalseSentence(seed, "diff", rank, sentence, why))
    false += _silent(plan, texts)
    everything = " ".join(text for _, _, text in texts)
    missed = list(missed_causes(truth, everything))
    planted = _is_notable(truth.cause_cost, truth) or _is_notable(truth.shared_cost, truth)
    planted = planted or plan.kind == "evaluation"
    return Judgment(plan, tuple(false), count, not missed if planted else None, "; ".join(missed))


def _rows(
    surfaces: JobSurfaces, plan: JobPlan, truth: JobTruth, contexts: Mapping[int, Context]
) -> Iterator[tuple[str, int, str, str | None]]:
    """Yield (table, rank, row in words, why it is false) of what tables say of these ranks and of the job."""
    for rank in _looked_at(plan):
        worker = surfaces.worker(truth, rank)
        idle = surfaces.answer("idle/ranks", worker) if surfaces.has_device else None
        path, overview = (surfaces.answer(slug, worker) for slug in ("critical_path/beside", "overview/ranks"))
        for table, row, why in judge_rank_rows(idle, path, overview, contexts[rank]):
            yield table, rank, row, why
    job = surfaces.answer("distributed", surfaces.workers[0])
    for table, row, why in judge_job_rows(job, contexts):
        yield table, plan.present[0], row, why


def _silent(plan: JobPlan, texts: list[tuple[str, int, str]]) -> Iterator[FalseSentence]:
    """Yield the surfaces that don't say how many of how many ranks were compared although some are missing."""
    surfaces = dict.fromkeys(surface for surface, *_ in texts if surface in _COUNTING_SURFACES)
    for surface in surfaces if plan.missing else ():
        said = " ".join(text for each, _, text in texts if each == surface)
        if not re.search(rf"\b{len(plan.present)} of {plan.ranks} ranks|Only rank \d+ was read", said):
            yield FalseSentence(
                plan.seed, surface, plan.present[0], said, "it doesn't say how many ranks were compared"
            )


def _looked_at(plan: JobPlan) -> Iterator[int]:
    """Yield a rank that isn't planted to be late, and the one that is."""
    yield from [rank for rank in plan.present if rank not in plan.late][:1]
    yield from [rank for rank in plan.present if rank in plan.late][:1]


def _is_notable(cost: float, truth: JobTruth) -> bool:
    return cost >= 1.1 * NOTABLE_SHARE * truth.step


def missed_causes(truth: JobTruth, said: str) -> Iterator[str]:
    """Yield the planted causes that no surface names."""
    plan = truth.plan
    causes = plan.causes if _is_notable(truth.cause_cost, truth) else ()
    # Where one is notable by itself, the others need not be named for the little that they cost.
    alone = [cause for cause in causes if len(causes) > 1 and _is_notable(truth.cost_of({cause.rank}), truth)]
    for cause in alone or causes:
        rank = cause.rank
        is_named = "is a|are|may be|has a slower|have slower" if cause.kind == "device" else "is a|are|may be"
        named = re.search(rf"[Rr]anks? [\d, and]*\b{rank}\b[\d, and]*(?: of \S+)? (?:{is_named})", said)
        # A rank that only missing ones wait for is late in no trace: what follows could be their own lateness.
        unseen = rank in plan.missing or truth.waited_for(rank) < NOTABLE_SHARE * truth.step
        hidden = plan.missing and (unseen or plan.late_at_times)
        suspected = hidden and re.search(r"may be (?:the )?straggler|whose trace is missing, at least", said)
        if rank in plan.missing and cause.steps is not None:
            # It isn't late in a typical step: the others show only that they communicate longer in the odd one.
            odd = "|".join(str(step + 1) for step in cause.steps)
            suspected = suspected or re.search(
                rf"Steps? [\d, and]*\b(?:{odd})\b[\d, and]* takes? .{{,90}} mostly in NCCL", said
            )
        if plan.kind in ("half", "in turn", "stall", "checkpoint"):
            named = named or re.search(
                "Ranks take turns being late|differences between the ranks cost|work is uneven", said
            )
            named = named or re.search(rf"Rank {rank} is late (?:once|\d+ times)", said)
        work = re.search(WORK_NAMES.get(cause.kind, "^$"), said)
        if not (named or suspected or work) and len(plan.present) > 1:
            yield f"rank {rank} ({cause.kind}) costs {truth.cause_cost:.0f} of {truth.step:.0f} µs"
    on_cpu = plan.kind == "cpu" and plan.shared is not None and plan.shared[0] == "host"  # just an operator
    if plan.shared is not None and not on_cpu and _is_notable(truth.shared_cost, truth):
        if not re.search(_SHARED_NAMES[plan.shared[0]], said):
            yield f"{plan.shared[0]} of all ranks costs {truth.shared_cost:.0f} of {truth.step:.0f} µs"
    outside = truth.between(plan.present[0])
    if outside > MIN_OUTSIDE_SHARE * sum(truth.durations(plan.present[0])) and BETWEEN_OPERATOR not in said:
        yield f"{outside:.0f} µs outside of steps"
    if plan.odd is not None and ODD_OPERATOR not in said:
        yield f"step {plan.odd[0] + 1} takes {plan.odd[1]:.0f} µs more"
