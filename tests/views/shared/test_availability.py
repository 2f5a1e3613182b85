"""Why a trace has nothing to show is known without importing the tabs that build nothing while it is loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.support.traces import draw
from torch_tb_profiler.views import SLUGS, find_tab
from torch_tb_profiler.views._shared.availability import REASONS, known_reasons

TRACE = "host  cpu_op  aten::mm  0  10"


@pytest.mark.parametrize("slug", REASONS)
def test_a_known_reason_is_that_of_the_tab(slug: str) -> None:
    tab = find_tab(slug)
    assert tab.unavailable is REASONS[slug]
    assert tab.views_built_on_load == ()
    assert {"epoch", "boot"} <= set(tab.clocks)
    assert known_reasons(draw(TRACE))[slug](draw(TRACE)) == tab.reason(draw(TRACE))


def test_reasons_of_iteration_metrics_are_those_that_the_tabs_give() -> None:
    assert known_reasons(replace(draw(TRACE), clock="iteration")) == {}


_LOADED = """
import sys
from tests.support.traces import draw
from torch_tb_profiler.session.jobs import analyze
from torch_tb_profiler.views._shared.availability import REASONS

summary, results, _ = analyze(draw({trace!r}), reduces={reduces})
assert summary.unavailable.keys() >= {{"memory", "hangs", "lightning"}} and results
print(sorted(slug for slug in REASONS if "torch_tb_profiler.views." + slug in sys.modules))
"""


@pytest.mark.parametrize("reduces", [False, True])
def test_a_trace_alone_is_analyzed_without_the_other_tabs(reduces: bool) -> None:
    command = [sys.executable, "-c", _LOADED.format(trace=TRACE, reduces=reduces)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[3])
    assert done.returncode == 0, done.stderr
    imported = done.stdout.strip()
    assert imported == (str(sorted(REASONS)) if reduces else "[]")
    assert set(REASONS) < set(SLUGS)
