"""A log folder and its runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from torch_tb_profiler.api.opened import Opened
from torch_tb_profiler.api.run import Run
from torch_tb_profiler.base import html
from torch_tb_profiler.session import Session


class Log:
    """The runs of a log folder, a URL or one trace file.

    Traces are read when something is asked of them, large ones in worker processes, and stay open. They are closed
    by `close`, at the end of a `with` block, or once neither the log nor one of its runs is used any more.
    """

    def __init__(self, session: Session) -> None:
        self._opened = Opened(session)

    def __enter__(self) -> Log:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all traces; nothing can be asked afterwards."""
        self._opened.close()

    @property
    def path(self) -> str:
        """What was opened, without secrets that an address may hold."""
        return self._opened.session.root

    @property
    def problems(self) -> tuple[str, ...]:
        """What could not be listed, and which runs have another name than their folder."""
        return self._opened.session.catalog.problems

    @property
    def runs(self) -> Mapping[str, Run]:
        """Name -> run, as of the last listing; sorted by name."""
        return {run.name: self.run(run.name) for run in self._opened.session.catalog.runs}

    def run(self, name: str | None = None) -> Run:
        """A run by name, by default the first. Raises NotFoundError, which lists the names there are."""
        return Run(self._opened, self._opened.session.catalog.run(name).name)

    def refresh(self) -> None:
        """List again, for runs that have come or gone since."""
        self._opened.session.scan()

    def __getitem__(self, name: str) -> Run:
        return self.run(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.runs)

    def __len__(self) -> int:
        return len(self._opened.session.catalog.runs)

    def __repr__(self) -> str:
        return f"<Log {self.path!r}: {', '.join(self.runs) or 'no runs'}>"

    def _repr_html_(self) -> str:
        """In a notebook: the runs."""
        rows = [
            {
                "run": run.name,
                "workers": len(run.workers),
                "spans": max((len(worker.spans) for worker in run.workers), default=0),
                "bytes": sum(file.size for file in run.files()),
            }
            for run in self._opened.session.catalog.runs
        ]
        return html.render_block(f"Log {self.path}", self.problems, html.render_table("runs", rows))
