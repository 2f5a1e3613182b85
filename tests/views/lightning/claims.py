"""Each sentence of Lightning on hooks: a trace where it holds, and one where it doesn't."""

from __future__ import annotations

from tests.support.claims import Claim, ReadSentences, read_sentences
from tests.support.traces import draw


def hooks(*times: int, outer: int = 1000) -> ReadSentences:
    """Read the sentences about a hook of `outer` us around others, which take these times."""
    lines, at = [f"host user_annotation [pl][profile]run_training_batch 0 {outer}"], 0
    for number, time in enumerate(times):
        lines.append(f"host user_annotation [pl][profile][Callback]C{number}.on_step {at} {time}")
        at += time
    return lambda: read_sentences("lightning", draw("\n".join(lines)))


CLAIMS = [
    Claim(
        "{name} is the top hook: {share} of the time in hooks.",
        r"C0\.on_step is the top hook: 60% of the time in hooks\.",
        hooks(600, 100),
        "the hook around it takes longer beside its nested hooks",
        hooks(300, 100),
    ),
    Claim(
        "{hooks} ran for {time} on the host. Time in a nested hook counts only for that hook.",
        r"3 hooks ran for 1\.00 ms on the host\.",
        hooks(600, 100),
        "the outer one takes longer",
        hooks(600, 100, outer=2000),
    ),
    Claim(
        "No time was recorded in hooks.",
        r"No time was recorded in hooks\.",
        hooks(outer=0),
        "a hook takes 1 ms",
        hooks(),
    ),
]

NO_CLAIMS: dict[str, str] = {}
"""Templates that say nothing of who, why, or how much, with the reason."""
