"""What the names of all kernels of real traces tell, as reviewed: tests/model/kernels/kernel_names.tsv.

The table has a line per spelling (names that differ only in numbers and template arguments are one), vendor and
verdict: how many names, a digest of them, family, whether they run on Tensor Cores and why. A change of a rule
shows here which names it moves; `python -m tests.model.kernels.test_corpus_names` writes the table anew, to be
read.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections import defaultdict
from pathlib import Path

from tests.corpus import real_traces
from torch_tb_profiler.model.devices import device_kind
from torch_tb_profiler.model.kernels.families import FAMILIES, NO_FAMILY, family_codes, family_of_name
from torch_tb_profiler.model.kernels.identifiers import parse_identifiers
from torch_tb_profiler.model.kernels.short_names import MAX_SHORT_NAME_LENGTH, short_kernel_names
from torch_tb_profiler.model.kernels.tensor_cores import TC_NO, TC_UNKNOWN, TC_YES, tensor_core_verdict
from torch_tb_profiler.model.kinds import Kind, event_ends, names_of_kind

pytestmark = real_traces.MARKS

TABLE = Path(__file__).with_name("kernel_names.tsv")
HEAD = "vendor\tspelling\tfamily\ttensor cores\twhy\tnames\tdigest"
WORDS = {TC_YES: "yes", TC_NO: "no", TC_UNKNOWN: "unknown"}


def lines(corpus: Path) -> list[str]:
    groups: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for _, trace in real_traces.whole_files(corpus):
        vendor = device_kind(trace)
        for name in names_of_kind(trace, Kind.KERNEL):
            uses, why = tensor_core_verdict(name, vendor)
            spelling = re.sub(r"\d+", "#", parse_identifiers(name).path)[:60]
            groups[vendor, spelling, family_of_name(name), WORDS[uses], why].add(name)
    rows = []
    for key, names in sorted(groups.items()):
        digest = int.from_bytes(hashlib.sha256("\n".join(sorted(names)).encode()).digest()[:5], "big")
        rows.append("\t".join([*key, str(len(names)), str(digest)]))
    return [HEAD, *rows]


def test_every_kernel_name_has_the_verdict_that_was_reviewed(corpus: Path) -> None:
    assert lines(corpus) == TABLE.read_text().splitlines()


OTHER = {
    "hta_cuda_event_sync": 0.7059,  # `spin_kernel`, which waits
    "hta_mtia_inference": 0.9013,  # phases of MTIA cards, which have no names
    "kineto_h100_fix_before": 1.0,  # one event, called `Kernel`
    "tl_b300_qwen3moe_decode": 0.0005,  # `alloc_decode_kernel`
}
"""Share of the device time of family "other", of runs with any; docs/definitions.md has the same table."""


def test_no_two_kernels_of_a_trace_share_a_short_name(corpus: Path) -> None:
    for _, trace in real_traces.whole_files(corpus):
        short = short_kernel_names(trace)
        assert len(set(short.values())) == len(short)
        assert all(len(each) <= MAX_SHORT_NAME_LENGTH for each in short.values())


def test_little_device_time_has_no_family(corpus: Path) -> None:
    whole: defaultdict[str, int] = defaultdict(int)
    other: defaultdict[str, int] = defaultdict(int)
    for name, trace in real_traces.whole_files(corpus):
        family, length = family_codes(trace), event_ends(trace) - trace.events.start
        run = name.partition("/")[0]
        whole[run] += int(length[family != NO_FAMILY].sum())
        other[run] += int(length[family == FAMILIES.index("other")].sum())
    assert {run: round(time / whole[run], 4) for run, time in other.items() if time} == OTHER
    share = sum(other.values()) / sum(whole.values())
    assert share < 0.03
    listed = (Path(__file__).parents[3] / "docs" / "definitions.md").read_text(encoding="utf-8")
    for run, part in {**OTHER, "all runs": share}.items():
        assert f"| {run} | {part:.2%} |" in listed


def test_the_table_is_of_many_names_and_all_verdicts() -> None:
    rows = [line.split("\t") for line in TABLE.read_text().splitlines()[1:]]
    assert sum(int(row[5]) for row in rows) > 900
    assert {row[3] for row in rows} == set(WORDS.values())


if __name__ == "__main__":
    sys.stdout.write("\n".join(lines(Path(os.environ["TRACE_CORPUS"]))) + "\n")
