"""What an agent can ask: the runs, the views and their answers, two runs compared, a part of a trace as a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from torch_tb_profiler.api.listing import listing
from torch_tb_profiler.api.log import Log
from torch_tb_profiler.api.tables import without_links
from torch_tb_profiler.base.format import parse_duration
from torch_tb_profiler.mcp.bounds import as_text
from torch_tb_profiler.session import Session
from torch_tb_profiler.session.state import POLL_SECONDS, wait_for_answer
from torch_tb_profiler.summary import as_markdown
from torch_tb_profiler.view import BASE
from torch_tb_profiler.views import find_view

Parameter = str | int | float | bool | list[str]

Save = Callable[[str, Iterable[bytes]], str]
"""Writes a file of a proposed name and says where it is. The only way to write one."""


class Tools:
    """Methods whose docstrings are read by agents. Every answer is text of at most `bounds.MAX_BYTES`.

    save  None if no file may be written
    They raise ProfilerError with a hint.
    """

    def __init__(self, session: Session, save: Save | None = None) -> None:
        self._session = session
        self._log = Log(session)
        self._save = save

    @property
    def readers(self) -> tuple[Callable[..., str], ...]:
        """The tools that change nothing."""
        return self.list_runs, self.list_views, self.summary, self.view, self.diff

    @property
    def writers(self) -> tuple[Callable[..., str], ...]:
        """The tools that write a file, none where that is not allowed."""
        return () if self._save is None else (self.slice,)

    def list_runs(self, field: str = "", first: int = 0) -> str:
        """List the runs with their workers and spans, and what could not be listed. Ask this first: these are the
        names that the other tools take. A run, worker or span that is not given is the first.

        Of a long listing, `field` (such as /runs/0/workers) and `first` choose a part.
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
            }
            for run in catalog.runs
        ]
        others = [{"kind": each.kind, "advice": each.advice, "files": len(each.files)} for each in catalog.others]
        return as_text({"runs": runs, "problems": [*catalog.problems], "other_files": others}, field, first)

    def list_views(self) -> str:
        """List the views for the tool `view`: what each answers, and its parameters with their defaults."""
        return listing()

    def summary(self, run: str | None = None, span: str | None = None) -> str:
        """Say what matters of a run, of all its workers, on one page: step time and what bounds it, top operators,
        kernels and modules, device use, communication and who is late, memory, advice with its gain. Start here.
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
        """Answer a view of one trace, such as overview, operators, kernels, idle, memory or operators/stacks, as
        JSON. Times are in ns, sizes in bytes, shares 0..1, null is unknown; `list_views` has views and parameters.

        Of a long answer, `left_out` says what is missing; `field` (such as /rows) and `first` choose a part.
        """
        find_view(view)
        tab, _, part = view.partition("/")
        ask: Any = getattr(self._log.run(run), tab)
        if part:
            ask = getattr(ask, part)
        names = {name: value for name, value in (("worker", worker), ("span", span)) if value is not None}
        result = ask(**{**(parameters or {}), **names})
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
        whether the recordings prove it. Without any base it is the run most like the candidate.
        Answers as `view` does.
        """
        base = dict(zip(BASE, (base_run, base_worker, base_span), strict=True))
        given: dict[str, Parameter] = {name: value for name, value in base.items() if value is not None}
        return self.view("diff", run, worker, span, given, field, first)

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
        """Write a part of a trace as a trace file of its own into the folder that the user gave, and answer its
        path: from `begin` to `end` after the trace's start (such as 1.5s, 200ms, 35us), or one `step`; only some
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
