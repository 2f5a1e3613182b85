"""The views as methods with the parameters that they declare, and their description in words."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec.structs import fields

from torch_tb_profiler.api.result import Result
from torch_tb_profiler.api.shared_session import SharedSession
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.session import FileState
from torch_tb_profiler.session.state import POLL_SECONDS, wait_for_answer
from torch_tb_profiler.session.targets import RequestedNames
from torch_tb_profiler.view import BASE, OF_PAIR, PairView, View, options_of
from torch_tb_profiler.views import SLUGS, all_views, find_view

TRACE_PARAMETERS = ("worker", "span")
"""Parameters that every method takes in addition to those of its view."""


class Views:
    """A method per view. `views.pyi`, which is generated, declares them for type checkers and editors."""

    def __init__(self, shared: SharedSession, name: str) -> None:
        self._shared = shared
        self.name = name

    def __getattr__(self, slug: str) -> ViewMethod:
        if slug in SLUGS:
            return ViewMethod(self._shared, self.name, find_view(slug))
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {slug!r}")

    def __dir__(self) -> Iterable[str]:
        return [*super().__dir__(), *SLUGS]


class ViewMethod:
    """A view of a run: calling it returns its `Result`; its parts are its attributes."""

    def __init__(self, shared: SharedSession, run: str, view: View) -> None:
        self._shared = shared
        self._run = run
        self._view = view
        self.__name__ = view.slug
        self.__doc__ = method_doc(view)
        self.__signature__ = method_signature(view)

    def __call__(self, **arguments: Any) -> Result[Any]:
        worker, span = (_parameter_text(arguments.pop(name, None)) for name in TRACE_PARAMETERS)
        texts = {name: _parameter_text(value) for name, value in arguments.items()}
        params = {name: text for name, text in texts.items() if text is not None}

        session, view = self._shared.session, self._view
        if view.slug == "diff":
            base = RequestedNames(*(params.get(name) for name in BASE))
            sides = [(self._run, worker, span), *([] if base == RequestedNames() else [base])]
            view = find_view(session.comparison_view(*sides))

        def ask() -> tuple[FileState, bytes | None]:
            answer = session.view(view.slug, self._run, worker, span, params, wait=True, timeout=POLL_SECONDS)
            return answer.state, answer.payload

        return Result(view, wait_for_answer(ask))

    def __getattr__(self, part: str) -> ViewMethod:
        try:
            view = find_view(f"{self._view.slug}/{part}")
        except NotFoundError as error:
            raise AttributeError(f"view {self._view.slug!r} has no part {part!r}") from error
        return ViewMethod(self._shared, self._run, view)

    def __repr__(self) -> str:
        return f"<view {self._view.slug} of run {self._run!r}>"


def _parameter_text(value: object) -> str | None:
    """Return a parameter as the views parse it: lists separated by commas; None stays None and is not sent."""
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def method_signature(view: View) -> inspect.Signature:
    """Return the signature of a view's method, keywords only: the trace, the base of a diff, the parameters."""
    of_pair = OF_PAIR if isinstance(view, PairView) else ()
    keywords = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None)
        for name in (*TRACE_PARAMETERS, *of_pair)
    ]
    for field in fields(view.params):
        default = inspect.Parameter.empty if field.required else field.default
        keywords.append(inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default))
    return inspect.Signature(keywords)


def method_doc(view: View) -> str:
    """Return the docstring of a view's method: its title, its parameters, and its payload."""
    described: list[type[msgspec.Struct]] = [view.params, view.payload]
    return "\n\n".join([f"{view.title}.", *(inspect.cleandoc(each.__doc__ or "") for each in described)])


def describe_views() -> str:
    """Return, for every view, what it answers and its parameters with their defaults, as lines of text."""
    lines = []
    for view in all_views():
        lines.append(f"  {view.slug:24}{describe_view(view)}\n")
        lines += [f"      {parameter}\n" for parameter in _describe_parameters(view)]
    return "".join(lines)


def describe_view(view: View) -> str:
    """Return what a view answers, in one sentence."""
    if view.answers:
        return view.answers
    first = inspect.cleandoc(view.payload.__doc__ or view.title).split("\n\n", 1)[0]
    return re.split(r"(?<=[.;]) ", " ".join(first.split()), maxsplit=1)[0].rstrip(".;") + "."


def _describe_parameters(view: View) -> list[str]:
    descriptions = []
    for field in fields(view.params):
        options = "|".join(options_of(field.type))
        default = f"default {field.default!r}" if field.default not in ("", None) else "optional"
        default = "required" if field.required else default
        descriptions.append(f"{field.name}{f'={options}' if options else ''} ({default})")
    return descriptions
