"""Each sentence of summaries, comments and reports: a recording where it holds, and one where it doesn't."""

from __future__ import annotations

import pickle
from pathlib import Path
from tempfile import TemporaryDirectory

import torch_tb_profiler as ttp
from tests.support.claims import Claim, ReadSentences
from tests.support.diffs import compare, noise
from tests.support.recordings import Op, record
from tests.support.snapshots import snapshot
from tests.support.traces import document, event
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.cli._diff_formats import MAX_OPERATORS, format_markdown
from torch_tb_profiler.summary import as_markdown

STEPS = "\n".join(f"host user_annotation ProfilerStep#{step} {1000 * step} 1000" for step in range(4))


def summarized(picture: str, cut: bool = False) -> ReadSentences:
    """Read the summary of a run of one file, which may be cut off."""

    def say() -> str:
        with TemporaryDirectory() as folder:
            content = document([event(line) for line in picture.splitlines()])
            (Path(folder) / "rank0.1.pt.trace.json").write_bytes(content[:-25] if cut else content)
            with ttp.open(folder, Settings(cache_bytes=0)) as log:
                return as_markdown(log.run().summary())

    return say


def commented(*factors: float) -> ReadSentences:
    """Read the comment on a change in which operators take so many times as long."""

    def say() -> str:
        base, candidate = (
            record([Op(f"aten::op{i}", 100 * factor) for i, factor in enumerate(of)], 8, noise(seed))
            for seed, of in enumerate(([1.0] * len(factors), factors))
        )
        return format_markdown(compare(base, candidate), [])

    return say


def failed(*ranks: bool) -> ReadSentences:
    """Read the summary of a snapshot per rank, which ran out of memory or not."""

    def say() -> str:
        with TemporaryDirectory() as folder:
            for rank, fails in enumerate(ranks):
                value = snapshot()
                entries = value["device_traces"][0]
                value["device_traces"][0] = [each for each in entries if fails or each["action"] != "oom"]
                (Path(folder) / f"rank{rank}_memory_snapshot.pickle").write_bytes(pickle.dumps(value))
            with ttp.open(folder, Settings(cache_bytes=0)) as log:
                return as_markdown(log.run().summary())

    return say


CLAIMS = [
    Claim(
        "No problems with the files.",
        "No problems with the files.",
        summarized(STEPS),
        "one is cut off",
        summarized(STEPS, cut=True),
    ),
    Claim(
        "No operator changed significantly.",
        "No operator changed significantly.",
        commented(1.0, 1.0, 1.0),
        "one takes twice as long",
        commented(1.0, 2.0, 1.0),
    ),
    Claim(
        "{} more changed.",
        r"\n2 more changed\.\n",
        commented(*[2.0] * (MAX_OPERATORS + 2)),
        "all that changed are listed",
        commented(*[2.0] * MAX_OPERATORS),
    ),
    Claim(
        "{} of {} ran out of memory.",
        r"- 2 of 3 snapshots ran out of memory\.",
        failed(True, False, True),
        "one did",
        failed(True, False, False),
    ),
]

NO_CLAIMS = {
    "no complete step": "why nothing is said",
    "No steps were recorded.": "why nothing is said",
    "{}, flight recorder dumps.": "what was read: tests/session/test_dumps.py",
}
"""Templates that say nothing of who, why, or how much, with the reason."""
