"""A summary of every real run: nothing breaks, and it fits."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from tests.corpus import real_traces
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.summary import MAX_BYTES, Summary, as_json, as_markdown, summarize
from torch_tb_profiler.view import Member, Members, RankView, Reduction, RunView, TraceView
from torch_tb_profiler.views import all_tabs, find_view

pytestmark = real_traces.MARKS


class Traces:
    """Traces that are in memory already, asked as a session would be."""

    span = "1"

    def __init__(self, run: str, traces: dict[str, Trace]) -> None:
        self.run = run
        self.workers = tuple(traces)
        self._traces = traces
        self._members = cache(self._reduced)

    def ask(self, slug: str, worker: str) -> Any:
        view = find_view(slug)
        tab = next(tab for tab in all_tabs() if tab.slug == view.tab)
        reason = tab.unavailable(self._traces[worker])
        if reason is not None:
            raise NotFoundError(reason)
        match view:
            case TraceView():
                return view.build(self._traces[worker], view.params())
            case RankView():
                alone = view.alone.build(self._traces[worker], view.alone.params())
                return view.build(alone, worker, self._members(view.reduction), view.params())
            case RunView():
                return view.build(self._members(view.reduction), view.params())
            case _:
                raise AssertionError(slug)

    def _reduced(self, reduction: Reduction[Any]) -> Members[Any]:
        unavailable = next(tab.unavailable for tab in all_tabs() if tab.slug == reduction.slug)
        members = []
        for rank, (worker, trace) in enumerate(self._traces.items()):
            reason = unavailable(trace)
            result = None if reason is not None else reduction.reduce(trace)
            members.append(Member(worker, rank, "1", "ready", reason, result))
        return Members(members)


def test_every_run_fits_and_keeps_to_the_schema(corpus: Path) -> None:
    runs: dict[str, dict[str, Trace]] = {}
    for name, trace in real_traces.recordings(corpus):
        runs.setdefault(name.partition("/")[0], {})[name.partition("/")[2]] = trace
    assert len(runs) > 30
    empty = []
    for run, traces in runs.items():
        try:
            found = summarize(Traces(run, traces))
        except NotFoundError:
            empty.append(run)  # no event with a time
            continue
        text = as_json(found)
        assert msgspec.json.decode(text, type=Summary).run, run
        assert max(len(text.encode()), len(as_markdown(found).encode())) <= MAX_BYTES, run
        assert found.workers == len(traces) >= found.read > 0, run
        if found.step is not None:
            known = [time for time in found.step.breakdown.values() if time is not None]
            assert sum(known) <= found.step.mean_ns * 1.000001, run
    assert len(empty) < 5, empty
