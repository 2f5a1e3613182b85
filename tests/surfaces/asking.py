"""The surfaces that answer a view, each asked the way its users ask, over one session."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Mapping
from contextlib import nullcontext, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch

from werkzeug.test import Client

import torch_tb_profiler as ttp
from tests.corpus import real_traces
from torch_tb_profiler.api.tables import without_links
from torch_tb_profiler.base.errors import ProfilerError
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.cache import Cache
from torch_tb_profiler.cli import main
from torch_tb_profiler.executors.job import ProgressTuple
from torch_tb_profiler.http import App
from torch_tb_profiler.mcp.tools import Tools
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.report import collect_contents
from torch_tb_profiler.report.collect import Contents
from torch_tb_profiler.session import Answer, Root, Session
from torch_tb_profiler.session.jobs import Loaded, LoadRequest, analyze, load_file

REPORT_BYTES = 3_500_000
"""Of answers: what is left of 5 MB beside the page."""

Payload = Any
"""A payload as JSON values, or the message of an error."""


class Remembering(Session):
    """Builds the answer to a question once, however many surfaces ask it."""

    def __init__(self, roots: list[Root], settings: Settings) -> None:
        super().__init__(roots, settings)
        self._answered: dict[Any, Answer] = {}

    def view(
        self,
        slug: str,
        run: str | None = None,
        worker: str | None = None,
        span: str | None = None,
        params: Mapping[str, str] | None = None,
        *,
        wait: bool = False,
        timeout: float | None = None,
    ) -> Answer:
        key = (slug, *self.find(run, worker, span).names, frozenset((params or {}).items()))
        if key not in self._answered:
            answer = super().view(slug, run, worker, span, params, wait=True)
            if answer.payload is None:
                return answer
            self._answered[key] = answer
        return self._answered[key]


def recall_traces(corpus: Path) -> Callable[..., Loaded]:
    """Return what loads files: those of the corpus that another test has read are not read again."""
    traces = (corpus / "traces").resolve()

    def load(request: LoadRequest, cache: Cache, report: Callable[[ProgressTuple], None]) -> Loaded:
        path = Path(request.id.uri.removeprefix("file://")).resolve()
        if not path.is_relative_to(traces):
            return load_file(request, cache, report)
        trace = real_traces.outcome(path)
        if not isinstance(trace, Trace):
            raise trace
        return Loaded(*analyze(trace), cached=False, trace=trace)

    return load


class Surfaces:
    """A method per surface: what it says of a view of a run, all other parameters left to their defaults."""

    def __init__(self, session: Session, path: Path) -> None:
        self.session = session
        self.path = path
        self.client = Client(App(session))
        self.tools = Tools(session)
        self.log = ttp.Log(session)
        self.reports: dict[str, Contents] = {}

    def answered(self, slug: str, run: str) -> Payload:
        """Return what the session itself says."""
        try:
            answer = self.session.view(slug, run, wait=True)
        except ProfilerError as error:
            return error.message
        if answer.payload is None:
            assert answer.state.error is not None
            return answer.state.error.message
        return json.loads(answer.payload)

    def http(self, slug: str, run: str) -> Payload:
        body = json.loads(self.client.get(f"/view/{slug}", query_string={"run": run}).data)
        return body["error"]["message"] if "error" in body else body["payload"]

    def command_line(self, slug: str, run: str) -> Payload:
        code, out, err = self.command("view", slug, str(self.path), "--run", run)
        return json.loads(out) if code == 0 else err.partition("\n")[0]

    def python(self, slug: str, run: str) -> Payload:
        try:
            result = getattr(self.log[run], slug)()
        except ProfilerError as error:
            return error.message
        for table in result.tables:
            result.to_arrow(table).validate()
        assert type(result.data) is result._view.payload
        return result.to_dict()

    def agent(self, slug: str, run: str) -> Payload:
        try:
            return json.loads(self.tools.view(slug, run))["answer"]
        except ProfilerError as error:
            return error.message

    def report(self, slug: str, run: str) -> Payload:
        """Return the report, or what its command says if there is none."""
        if isinstance(reason := self.answered("overview", run), str):
            return reason
        if run not in self.reports:
            names = self.session.view("overview", run, wait=True)
            self.reports[run] = collect_contents(
                self.session, (names.run, names.worker, names.span), None, REPORT_BYTES
            )
        contents = self.reports[run]
        for path, _, number in contents.entries:
            if path == f"view/{slug}":
                body = json.loads(gzip.decompress(base64.b64decode(contents.answers[number][1])))
                return body["error"]["message"] if "error" in body else body["payload"]
        return contents.left_out

    def command(self, *arguments: str) -> tuple[int, str, str]:
        """Return (exit code, stdout, stderr) of a command over the session."""
        out, err = StringIO(), StringIO()
        opened = nullcontext(self.session)
        with (
            patch(f"torch_tb_profiler.cli.{arguments[0]}.open_cli_session", lambda *_: opened),
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            return main([*arguments]), out.getvalue(), err.getvalue()


def agrees(part: Any, whole: Any) -> bool:
    """Return whether an answer of bounded size is the start of the whole, number by number."""
    if isinstance(whole, dict):
        return isinstance(part, dict) and all(key in whole and agrees(part[key], whole[key]) for key in part)
    if isinstance(whole, list):
        return isinstance(part, list) and all(agrees(*each) for each in zip(part, whole, strict=False))
    if isinstance(whole, str):
        return isinstance(part, str) and whole.startswith(part)
    return bool(part == whole)


def shorten(payload: Payload) -> Payload:
    """Shorten a payload as an agent gets it."""
    return payload if isinstance(payload, str) else without_links(payload)
