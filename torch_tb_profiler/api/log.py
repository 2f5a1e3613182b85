"""A log folder and its runs: what `torch_tb_profiler.open` returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from torch_tb_profiler.api.columns import Columns
from torch_tb_profiler.api.shared_session import SharedSession
from torch_tb_profiler.api.views import Views
from torch_tb_profiler.base import html
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.base.threadsafe import threadsafe
from torch_tb_profiler.session import FileState, Session
from torch_tb_profiler.session.state import POLL_SECONDS, wait_for_answer
from torch_tb_profiler.summary import Summary, summarize
from torch_tb_profiler.views import SLUGS, find_view
from torch_tb_profiler.views.hangs.payload import HangsPayload


class Log:
    """The runs of a log folder, a URL, or a trace file.

    Traces are read on first use, large ones in worker processes, and stay open. They are closed by `close`, at the
    end of a `with` block, or when neither the log nor one of its runs is used any more.
    """

    def __init__(self, session: Session) -> None:
        self._shared = SharedSession(session)

    def __enter__(self) -> Log:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all traces; the log and its runs can't be used afterwards."""
        self._shared.close()

    @property
    def path(self) -> str:
        """Return the path or URL that was opened, without any secrets in it."""
        return self._shared.session.root

    @property
    def problems(self) -> tuple[str, ...]:
        """Return which parts of the folder could not be listed, and which runs are named unlike their folder."""
        return self._shared.session.catalog.problems

    @property
    def runs(self) -> Mapping[str, Run]:
        """Name -> run, as of the last listing; sorted by name."""
        return {run.name: self.run(run.name) for run in self._shared.session.catalog.runs}

    def run(self, name: str | None = None) -> Run:
        """Return a run by name, by default the first. Raises NotFoundError, which lists the available names."""
        return Run(self._shared, self._shared.session.catalog.run(name).name)

    def refresh(self) -> None:
        """List the folder again, to find new runs and drop deleted ones."""
        self._shared.session.scan()

    def __getitem__(self, name: str) -> Run:
        return self.run(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.runs)

    def __len__(self) -> int:
        return len(self._shared.session.catalog.runs)

    def __repr__(self) -> str:
        return f"<Log {self.path!r}: {', '.join(self.runs) or 'no runs'}>"

    def _repr_html_(self) -> str:
        """Return the table of runs, for a notebook."""
        rows = [
            {
                "run": run.name,
                "workers": len(run.workers),
                "spans": max((len(worker.spans) for worker in run.workers), default=0),
                "bytes": sum(file.size for file in run.files()),
            }
            for run in self._shared.session.catalog.runs
        ]
        return html.render_block(f"Log {self.path}", self.problems, html.render_table("runs", rows))


class Run(Views):
    """A run of a log. Every view is a method that returns a `Result`; its parts are methods of that method:

        run.operators(group_by="module").to_pandas()
        run.operators.stacks(event=17)

    `worker` and `span` select a trace, by default the first, as on the page; the other parameters are those of the
    view. `help(run.operators)` lists them, with their defaults and units. They raise UsageError for an invalid
    parameter, NotFoundError for an unknown name or if the trace has nothing to show (with the reason), and
    ProfilerError if a trace can't be read.
    """

    @property
    def workers(self) -> Mapping[str, Sequence[str]]:
        """Return worker -> names of its spans. A file of several ranks is one worker until it has been read."""
        session = self._shared.session
        workers = session.workers(session.catalog.run(self.name))
        return {worker.name: [span.name for span in worker.spans] for worker in workers}

    def columns(
        self, *, worker: str | None = None, span: str | int | None = None, capture: str | None = None
    ) -> Columns:
        """Return the columns of one trace as Arrow tables; `worker` and `span` are by default the first.

        capture  a run of the same log folder that holds captures of this run's graphs
        """
        names = self.name, worker, None if span is None else str(span)
        session = self._shared.session
        trace = wait_for_answer(lambda: session.trace(*names, capture=capture, wait=True, timeout=POLL_SECONDS))
        return Columns(trace)

    def summary(self, *, span: str | int | None = None) -> Summary:
        """Summarize the run, all its workers, at `span` (by default the first).

        Raises ProfilerError if no worker can be read.
        """
        return summarize(WorkerAnswers(self._shared.session, self.name, None if span is None else str(span)))

    def __repr__(self) -> str:
        return f"<Run {self.name!r}: {', '.join(self.workers)}>"

    def _repr_html_(self) -> str:
        """Return the workers and the available views, for a notebook."""
        rows = [{"worker": name, "spans": ", ".join(spans)} for name, spans in self.workers.items()]
        views = f"Views: {', '.join(SLUGS)}; summary(), columns()."
        return html.render_block(f"Run {self.name}", [views], html.render_table("workers", rows))


class WorkerAnswers:
    """What the views answer for each worker of a run at one span; a source for `summarize`.

    All files of the span are loaded first; `show` is called with the state of each while it loads.
    Raises NotFoundError for an unknown run or span.
    """

    def __init__(
        self,
        session: Session,
        run: str | None = None,
        span: str | None = None,
        show: Callable[[FileState], None] = lambda _: None,
    ) -> None:
        selected = session.catalog.run(run)
        spans = [each for worker in selected.workers for each in worker.spans]
        self.run = selected.name
        self._has_dumps = bool(selected.dumps)
        self._show = show
        self.span = span or (spans[0].name if spans else "")
        self._session = session
        files = [each for each in spans if each.name == self.span]
        if not files and spans:
            available = ", ".join(dict.fromkeys(each.name for each in spans))
            raise NotFoundError(f"there is no span {self.span!r}", hint=f"spans: {available}")
        ids = [session.load(each) for each in files]
        for id_, file in zip(ids, files, strict=True):
            while not session.wait(id_, POLL_SECONDS):
                show(session.state(file))

    @property
    def workers(self) -> Sequence[str]:
        """Return the names of the workers that have the span; each rank of a file of several ranks is one."""
        workers = self._session.workers(self._session.catalog.run(self.run))
        return [each.name for each in workers if any(span.name == self.span for span in each.spans)]

    @property
    def hang(self) -> HangsPayload | None:
        """Return the answer of the Hangs tab, None if the run has no flight recorder dumps."""
        if not self._has_dumps:
            return None

        def ask() -> tuple[FileState, bytes | None]:
            answer = self._session.view("hangs", self.run, wait=True, timeout=POLL_SECONDS)
            return answer.state, answer.payload

        return msgspec.json.decode(wait_for_answer(ask, self._show), type=threadsafe(HangsPayload))

    def answer(self, slug: str, worker: str) -> Any:
        """Return the payload of a view for a worker; raise ProfilerError if it has none."""

        def ask() -> tuple[FileState, bytes | None]:
            answer = self._session.view(slug, self.run, worker, self.span, wait=True, timeout=POLL_SECONDS)
            return answer.state, answer.payload

        return msgspec.json.decode(wait_for_answer(ask), type=threadsafe(find_view(slug).payload))
