"""What the communication that makes steps odd is spent on, which only the files of all ranks show together."""

from __future__ import annotations

from torch_tb_profiler.analyses.distributed.comparison import RankComparison
from torch_tb_profiler.analyses.distributed.steps import ExposedCommunication, exposed_steps
from torch_tb_profiler.analyses.shared.odd_steps import MIN_CAUSE_SHARE
from torch_tb_profiler.base.grammar import agree
from torch_tb_profiler.views._shared.job.exposed import (
    awaited_clause,
    communication_parts,
    communication_sentence,
)
from torch_tb_profiler.views._shared.job.names import job_noun
from torch_tb_profiler.views._shared.odd_steps import ONE_RANK_NOTE
from torch_tb_profiler.views._shared.text import Text, join_phrases, plain, replace_sentence


def split_odd_steps(explanation: Text, comparison: RankComparison, member: int) -> Text:
    """Return the explanation of odd steps with the ranks that these wait for, in place of that this is unknown.

    It stays as it is if communication makes no step longer, or if that of such a step wasn't compared.
    """
    summary = comparison.sources[member].summary
    table = summary.steps.table()
    typical = table[table["typical"]]
    if not len(typical):
        return explanation
    communication = table["exposed"] + (0 if summary.by_kernels else table["overlap"])
    extra = table["duration"] - typical["duration"].mean()
    more = communication - communication[table["typical"]].mean()
    odd = table["complete"] & ~table["typical"] & (extra > 0) & (more > MIN_CAUSE_SHARE * extra)
    names = [name for name, is_odd in zip(summary.steps.names, odd.tolist(), strict=True) if is_odd]
    found = [exposed_steps(comparison, member, name) for name in names]
    compared = [each for each in found if each is not None]
    if not names or len(compared) < len(found):
        return explanation
    parts = communication_parts(
        float(communication[odd].sum()),
        ExposedCommunication(
            float(sum(each.transfer.sum() for each in compared)),
            float(sum(each.waiting.sum() for each in compared)),
            any(each.bounded for each in compared),
        ),
    )
    waiting: dict[int, float] = {}
    for each in compared:
        for late, times in each.waiting_for.items():
            waiting[late] = waiting.get(late, 0.0) + float(times.sum())
    awaited = [
        (comparison.sources[late].rank, comparison.sources[late].worker, ns)
        for late, ns in sorted(waiting.items(), key=lambda item: -item[1])
    ]
    noun = job_noun(comparison)
    what = (
        f"{'exposed ' if summary.by_kernels else ''}communication in "
        f"{agree(len(names), noun, f'{noun}s')} {plain(join_phrases(names))}"
    )
    return replace_sentence(
        explanation, ONE_RANK_NOTE, communication_sentence(parts, awaited_clause(parts, awaited), what=what)
    )
