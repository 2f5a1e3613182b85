"""Each sentence is said where it is true, and not where one thing makes it false; no module is left out."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.summary import claims as of_summary
from tests.support.claims import Claim, templates_of
from tests.views import origin_claims as of_origins
from tests.views.critical_path import claims as of_critical_path
from tests.views.diff import claims as of_diff
from tests.views.distributed import page_claims as of_distributed
from tests.views.hangs import claims as of_hangs
from tests.views.idle import claims as of_idle
from tests.views.kernels import claims as of_kernels
from tests.views.lightning import claims as of_lightning
from tests.views.memory import claims as of_memory
from tests.views.memory import snapshot_claims as of_snapshots
from tests.views.memory import snapshot_comparison_claims as of_compared_snapshots
from tests.views.modules import claims as of_modules
from tests.views.operators import claims as of_operators
from tests.views.overlap import claims as of_overlap
from tests.views.overview import claims as of_overview
from tests.views.roofline import claims as of_roofline
from tests.views.serving import claims as of_serving
from tests.views.shared import claims as of_shared
from tests.views.trace import claims as of_trace
from torch_tb_profiler.cli import _diff_formats as diff_comment
from torch_tb_profiler.summary import build as summary
from torch_tb_profiler.summary import formats as summary_formats
from torch_tb_profiler.summary import snapshots as summary_snapshots
from torch_tb_profiler.training import trace_ready
from torch_tb_profiler.views import lightning
from torch_tb_profiler.views import origins as origins
from torch_tb_profiler.views._shared import modules, odd_steps, wording
from torch_tb_profiler.views._shared import origins as origins_shared
from torch_tb_profiler.views._shared import serving as serving_shared
from torch_tb_profiler.views._shared.job import exposed, members
from torch_tb_profiler.views.critical_path import ranks as critical_path_ranks
from torch_tb_profiler.views.critical_path import words as critical_path
from torch_tb_profiler.views.diff import gate as diff_gate
from torch_tb_profiler.views.diff import notes as diff_notes
from torch_tb_profiler.views.diff import words as diff
from torch_tb_profiler.views.distributed import communication, connections, problems, stragglers
from torch_tb_profiler.views.hangs import evidence as hang_evidence
from torch_tb_profiler.views.hangs import words as hangs
from torch_tb_profiler.views.idle import words as idle
from torch_tb_profiler.views.kernels import build as kernels
from torch_tb_profiler.views.memory import words as memory
from torch_tb_profiler.views.memory.snapshot import compare as snapshot_pairs
from torch_tb_profiler.views.memory.snapshot import instant as snapshot_instant
from torch_tb_profiler.views.memory.snapshot import ranks as snapshot_ranks
from torch_tb_profiler.views.memory.snapshot import words as snapshots
from torch_tb_profiler.views.operators import build as operators
from torch_tb_profiler.views.overlap import words as overlap
from torch_tb_profiler.views.overview import advice as overview_advice
from torch_tb_profiler.views.overview import ranks as overview_ranks
from torch_tb_profiler.views.overview import words as overview
from torch_tb_profiler.views.roofline import build as roofline_counters
from torch_tb_profiler.views.roofline import words as roofline
from torch_tb_profiler.views.serving import origins as serving_origins
from torch_tb_profiler.views.serving import ranks as serving_ranks
from torch_tb_profiler.views.serving import words as serving
from torch_tb_profiler.views.trace import words as trace

TABLES = {
    "overview": ([overview, overview_advice, overview_ranks], of_overview),
    "critical_path": ([critical_path, critical_path_ranks], of_critical_path),
    "idle": ([idle], of_idle),
    "memory": ([memory], of_memory),
    "snapshots": ([snapshots, snapshot_instant], of_snapshots),
    "snapshots compared": ([snapshot_pairs, snapshot_ranks], of_compared_snapshots),
    "lightning": ([lightning], of_lightning),
    "kernels": ([kernels], of_kernels),
    "operators": ([operators], of_operators),
    "roofline": ([roofline, roofline_counters], of_roofline),
    "diff": ([diff, diff_gate, diff_notes], of_diff),
    "distributed": ([problems, stragglers, connections, communication], of_distributed),
    "hangs": ([hangs, hang_evidence], of_hangs),
    "serving": ([serving, serving_shared, serving_ranks, serving_origins], of_serving),
    "modules": ([modules], of_modules),
    "overlap": ([overlap], of_overlap),
    "origins": ([origins, origins_shared], of_origins),
    "trace": ([trace], of_trace),
    "summary": ([summary, summary_formats, summary_snapshots, diff_comment, trace_ready], of_summary),
    "several": ([odd_steps, wording, exposed, members], of_shared),
}
"""View, or several of them -> the modules with its words, and its claims.

Of late ranks: tests/views/distributed/claims.py.
"""

ELSEWHERE = {
    "views/_shared/job/causes.py": "tests/views/distributed/test_claims.py",
    "views/_shared/job/names.py": "tests/views/distributed/test_claims.py",
    "views/_shared/job/verdict.py": "tests/views/distributed/test_claims.py",
    "views/overview/host_rule_words.py": "three traces for each rule: tests/analyses/overview/test_rules.py",
    "views/overview/rule_words.py": "three traces for each rule: tests/analyses/overview/test_rules.py",
    "model/vendors/gaudi.py": "configurations with and without: tests/model/vendors/test_gaudi_config.py",
    "session/answers/dumps.py": "which files were read: tests/session/test_dumps.py",
    "report/collect.py": "what a report leaves out: tests/report/test_report.py",
    "analyses/timeline/counters.py": "a title",
    "cli/screens/overview.py": "titles",
    "cli/screens/draw.py": "how many rows and columns fit: tests/cli/screens",
    "api/log.py": "help",
    "base/settings.py": "help",
    "cli/diff.py": "help",
    "cli/main.py": "help",
    "mcp/server.py": "help",
    "ingest/compiled.py": "names of libraries",
}
"""Module with sentences of other kinds, or whose traces stand in another table -> what they are, and where."""


@pytest.mark.parametrize(
    "claim",
    [
        pytest.param(claim, id=f"{view}: {claim.template[:50]}")
        for view, (_, table) in TABLES.items()
        for claim in table.CLAIMS
    ],
)
def test_a_claim_is_made_where_it_holds_and_not_where_it_is_false(claim: Claim) -> None:
    holds, other = claim.holds(), claim.other()
    assert re.search(claim.says, holds), holds
    assert not re.search(claim.says, other), (claim.false_if, other)


@pytest.mark.parametrize("view", TABLES)
def test_every_template_has_a_recording_that_makes_it_false(view: str) -> None:
    """A template that is new here needs one, too; what claims nothing is listed with the reason."""
    words, table = TABLES[view]
    text = {template for module in words for template in templates_of(module)}
    listed = {*(claim.template for claim in table.CLAIMS), *table.NO_CLAIMS}
    assert sorted(text ^ listed) == []
    assert not {claim.template for claim in table.CLAIMS} & table.NO_CLAIMS.keys()


def test_no_module_with_sentences_is_left_out() -> None:
    package = Path(summary.__file__).parents[1]
    said = {
        str(path.relative_to(package)): path
        for path in package.rglob("*.py")
        if any(templates_of(SimpleNamespace(__file__=str(path))))
    }
    listed = {
        str(Path(str(module.__file__)).relative_to(package))
        for modules, _ in TABLES.values()
        for module in modules
    }
    assert sorted(said.keys() - listed - ELSEWHERE.keys()) == []
    assert sorted(ELSEWHERE.keys() - said.keys()) == []
