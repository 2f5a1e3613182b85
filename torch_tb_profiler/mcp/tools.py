"""The tools of an agent: runs, views and their answers, summaries, comparisons, and slices of a trace as files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from torch_tb_profiler.api.log import Log
from torch_tb_profiler.api.tables import without_links
from torch_tb_profiler.api.views import describe_views
from torch_tb_profiler.base.format import parse_duration
from torch_tb_profiler.mcp.bounds import as_text
from torch_tb_profiler.session import Session
from torch_tb_profiler.session.state import POLL_SECONDS, wait_for_answer
from torch_tb_profiler.summary import as_markdown
from torch_tb_profiler.view import BASE
from torch_tb_profiler.views import find_view

Parameter = str | int | float | bool | list[str]

SaveFile = Callable[[str, Iterable[bytes]], str]
"""Writes a file under a proposed name and returns its path; tools write files in no other way."""


class Tools:
    """The tools of an agent, which reads their docstrings. Every answer is text of at most `bounds.MAX_BYTES`.

    save  writes files; None if tools may not write any
    The tools raise ProfilerError with a hint.
    """

    def __init__(self, session: Session, save: SaveFile | None = None) -> None:
        self._session = session
        self._log = Log(session)
        self._save = save

    @property
    def readers(self) -> tuple[Callable[..., str], ...]:
        """Return the tools that change nothing."""
        return self.list_runs, self.list_views, self.summary, self.view, self.diff

    @property
    def writers(self) -> tuple[Callable[..., str], ...]:
        """Return the tools that write a file; none if that is not allowed."""
        return () if self._save is None else (self.slice,)

    def list_runs(self, field: str = "", first: int = 0) -> str:
        """List the runs with their workers and spans, and what could not be listed. Call this first: the other
        tools take these names. If run, worker or span is omitted, the first one is used.

        `field` (such as /runs/0/workers) and `first` select part of a long listing.
        """
        self._log.refresh()
        catalog = self._session.catalog
        runs = [
            {
                "run": run.name,
                "workers": [
                    {
                        "worker": worker.name,
                        "rank": worker.rank,
                        "spans": [{"span": span.name, "label": span.label} for span in worker.spans],
                    }
                    for worker in self._session.workers(run)
                ],
                "memory_files": [each.name for each in run.memory_files],
                "flight_recorder_dumps": len(run.dumps),
            }
            for run in catalog.runs
        ]
        others = [{"kind": each.kind, "advice": each.advice, "files": len(each.files)} for each in catalog.others]
        return as_text({"runs": runs, "problems": [*catalog.problems], "other_files": others}, field, first)

    def list_views(self) -> str:
        """List the views for the tool `view`: what each answers, and its parameters with their defaults."""
        return describe_views()

    def summary(self, run: str | None = None, span: str | None = None) -> str:
        """Summarize a run, all its workers, on one page: step time and what limits it, top operators, kernels and
        modules, GPU utilization, communication and stragglers, memory, advice with its savings. Start here.
        """
        return as_markdown(self._log.run(run).summary(span=span))

    def view(
        self,
        view: str,
        run: str | None = None,
        worker: str | None = None,
        span: str | None = None,
        parameters: dict[str, Parameter] | None = None,
        field: str = "",
        first: int = 0,
    ) -> str:
        """Return a view of one trace, such as overview, operators, kernels, idle, memory or operators/stacks, as
        JSON. Times are in ns, sizes in bytes, shares 0..1, null is unknown; `list_views` has views and parameters.

        `left_out` lists what a long answer omits; select it with `field` (such as /rows) and `first`.
        """
        find_view(view)
        tab, _, part = view.partition("/")
        method: Any = getattr(self._log.run(run), tab)
        if part:
            method = getattr(method, part)
        names = {name: value for name, value in (("worker", worker), ("span", span)) if value is not None}
        result = method(**{**(parameters or {}), **names})
        return as_text(without_links(result.to_dict()), field, first)

    def diff(
        self,
        run: str | None = None,
        base_run: str | None = None,
        worker: str | None = None,
        base_worker: str | None = None,
        span: str | None = None,
        base_span: str | None = None,
        field: str = "",
        first: int = 0,
    ) -> str:
        """Compare a run (the candidate, `run`) with another one (`base_run`): what became slower or faster, and
        whether the change is significant. Without any base it picks the run most similar to the candidate.
        Returns the same kind of answer as `view`.
        """
        base = dict(zip(BASE, (base_run, base_worker, base_span), strict=True))
        params: dict[str, Parameter] = {name: value for name, value in base.items() if value is not None}
        return self.view("diff", run, worker, span, params, field, first)

    def slice(
        self,
        run: str | None = None,
        worker: str | None = None,
        span: str | None = None,
        begin: str | None = None,
        end: str | None = None,
        step: int | None = None,
        categories: list[str] | None = None,
        min_duration: str = "0ns",
    ) -> str:
        """Write part of a trace to a new trace file in the folder that the user chose, and return its path: from
        `begin` to `end`, counted from the start of the trace (such as 1.5s, 200ms, 35us), or one `step`; only some
        `categories`; without slices shorter than `min_duration`.
        """
        assert self._save is not None
        times = {"begin": begin, "end": end, "min_duration_ns": min_duration}
        params = {name: str(parse_duration(text)) for name, text in times.items() if text is not None}
        params["categories"] = ",".join(categories or [])
        if step is not None:
            params["step"] = str(step)
        excerpt = wait_for_answer(
            lambda: self._session.excerpt(run, worker, span, params, wait=True, timeout=POLL_SECONDS)
        )
        return as_text({"file": self._save(excerpt.name, excerpt.pieces)})
