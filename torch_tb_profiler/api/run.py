"""A run: its workers, and what each view answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch_tb_profiler.api.columns import Columns
from torch_tb_profiler.api.spans import RunSpan
from torch_tb_profiler.api.views import Views
from torch_tb_profiler.base import html
from torch_tb_profiler.session.state import POLL_SECONDS, wait_for_answer
from torch_tb_profiler.summary import Summary, summarize
from torch_tb_profiler.views import SLUGS


class Run(Views):
    """A run of a log. Every view is a method that answers a `Result`, its parts are methods of that method:

        run.operators(group_by="module").to_pandas()
        run.operators.stacks(event=17)

    `worker` and `span` choose a trace, by default the first, as on the page; further parameters are those of the
    view. `help(run.operators)` says which, with their defaults and units. They raise UsageError for a parameter
    that cannot be, NotFoundError for an unknown name and where a trace has nothing to show (with the reason),
    ProfilerError if a trace cannot be read.
    """

    @property
    def workers(self) -> Mapping[str, Sequence[str]]:
        """Worker -> names of its spans. A file of several ranks is one worker each, once it has been read."""
        session = self._opened.session
        workers = session.workers(session.catalog.run(self.name))
        return {worker.name: [span.name for span in worker.spans] for worker in workers}

    def columns(self, *, worker: str | None = None, span: str | int | None = None) -> Columns:
        """The columns of one trace as Arrow tables; `worker` and `span` are by default the first."""
        names = self.name, worker, None if span is None else str(span)
        session = self._opened.session
        trace = wait_for_answer(lambda: session.trace(*names, wait=True, timeout=POLL_SECONDS))
        return Columns(trace)

    def summary(self, *, span: str | int | None = None) -> Summary:
        """What matters of the run, of all its workers; `span` is by default the first.

        Raises ProfilerError if no worker can be read.
        """
        return summarize(RunSpan(self._opened.session, self.name, None if span is None else str(span)))

    def __repr__(self) -> str:
        return f"<Run {self.name!r}: {', '.join(self.workers)}>"

    def _repr_html_(self) -> str:
        """In a notebook: the workers, and what can be asked."""
        rows = [{"worker": name, "spans": ", ".join(spans)} for name, spans in self.workers.items()]
        asked = f"Views: {', '.join(SLUGS)}; summary(), columns()."
        return html.render_block(f"Run {self.name}", [asked], html.render_table("workers", rows))
