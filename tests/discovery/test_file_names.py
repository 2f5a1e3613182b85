"""What is asked of a file's name before an expression is compiled hides no name that the expression matches."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from torch_tb_profiler.discovery import dumps, names

PARTS = """host 1234 .1700000000000 .pt .trace .Trace trace rank rank_3 rank-12 _metrics _results ep1-ba3-rank2
TP-0 -DP-1- _EP2_ CP7 - _ . step 12 _iter_4 -Step 9 node0 merged_trace nccl_trace_rank_ .stack
stack_rank_2""".split()
STEMS = st.lists(st.sampled_from(PARTS), min_size=1, max_size=5).map("".join)


def worker_and_stamp(stem: str) -> tuple[str, str | None, bool]:
    """Return worker, stamp and whether the name is certain, by expressions alone."""
    certain = re.search(r"(?:\.pt)?\.trace$", stem, re.IGNORECASE) is not None
    stem = re.sub(r"(?:\.pt)?\.trace$", "", stem, flags=re.IGNORECASE)
    if match := names._COMPOSER.match(stem):
        return match["worker"], f"ep{match['epoch']}-ba{match['batch']}", True
    if match := names._METRICS.match(stem):
        return f"rank{int(match['rank'])}", None, certain
    if match := names._RESULTS.match(stem):
        return match["worker"], None, certain
    if certain and (match := names._PARALLEL.match(stem)):
        return match["worker"] or "worker", match["stamp"], True
    if match := re.match(r"^(?P<worker>.*?)\.(?P<stamp>\d+)$", stem) or names._NUMBERED.match(stem):
        return match["worker"] or "worker", match["stamp"], certain
    worker = re.sub(r"[-_.]trace$", "", stem, flags=re.IGNORECASE) or stem
    certain = certain or worker != stem or stem.lower() == "trace" or names._NODE.match(stem) is not None
    return worker or "worker", None, certain


@given(STEMS)
@example("1234-TP-0_.trace")
@example("ep1-ba3-rank2")
@example("host.1700000000000.PT.Trace")
@example("trace_step12")
@example("rank_3_metrics")
def test_names_are_parsed_as_their_expressions_say(stem: str) -> None:
    parsed = names.parse_file_name(f"{stem}.json")
    assert parsed is not None
    assert (parsed.worker, parsed.stamp, parsed.certain) == worker_and_stamp(stem)


@given(STEMS, st.sampled_from(["", ".json", ".pickle", ".pkl", ".txt", ".TXT"]))
@example("nccl_trace_rank_12", ".pkl")
@example("host.rank_3.stack", ".TXT")
def test_names_that_dumps_and_stacks_may_have_end_so(stem: str, suffix: str) -> None:
    name = stem + suffix
    assert dumps._ends_in_number(name) or dumps._DUMP.match(name) is None
    assert name[-4:].lower() == ".txt" or dumps._STACK.match(name) is None
