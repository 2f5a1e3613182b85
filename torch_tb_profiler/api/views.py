"""The views as methods, with the parameters that they declare."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec.structs import fields

from torch_tb_profiler.api.opened import Opened
from torch_tb_profiler.api.result import Result
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.session import FileState
from torch_tb_profiler.session.state import POLL_SECONDS, wait_for_answer
from torch_tb_profiler.view import OF_PAIR, PairView, View
from torch_tb_profiler.views import SLUGS, find_view

NAMES = ("worker", "span")
"""What every method takes beside the parameters of its view."""


class Views:
    """A method per view. What follows from the views is written in `views.pyi` for type checkers and editors."""

    def __init__(self, opened: Opened, name: str) -> None:
        self._opened = opened
        self.name = name

    def __getattr__(self, slug: str) -> ViewMethod:
        if slug in SLUGS:
            return ViewMethod(self._opened, self.name, find_view(slug))
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {slug!r}")

    def __dir__(self) -> Iterable[str]:
        return [*super().__dir__(), *SLUGS]


class ViewMethod:
    """A view of a run: called, it answers; its parts are its attributes."""

    def __init__(self, opened: Opened, run: str, view: View) -> None:
        self._opened = opened
        self._run = run
        self._view = view
        self.__name__ = view.slug
        self.__doc__ = description(view)
        self.__signature__ = signature(view)

    def __call__(self, **given: Any) -> Result[Any]:
        worker, span = (_text(given.pop(name, None)) for name in NAMES)
        params = {name: text for name, value in given.items() if (text := _text(value)) is not None}

        session = self._opened.session

        def ask() -> tuple[FileState, bytes | None]:
            answer = session.view(
                self._view.slug, self._run, worker, span, params, wait=True, timeout=POLL_SECONDS
            )
            return answer.state, answer.payload

        return Result(self._view, wait_for_answer(ask))

    def __getattr__(self, part: str) -> ViewMethod:
        try:
            view = find_view(f"{self._view.slug}/{part}")
        except NotFoundError as error:
            raise AttributeError(f"view {self._view.slug!r} has no part {part!r}") from error
        return ViewMethod(self._opened, self._run, view)

    def __repr__(self) -> str:
        return f"<view {self._view.slug} of run {self._run!r}>"


def _text(value: object) -> str | None:
    """A parameter as the views read it; None is not given, several values stand with commas between them."""
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def signature(view: View) -> inspect.Signature:
    """Keywords only: those of every method, of a pair what it is compared with, and those the view declares."""
    of_pair = OF_PAIR if isinstance(view, PairView) else ()
    keywords = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in (*NAMES, *of_pair)
    ]
    for field in fields(view.params):
        default = inspect.Parameter.empty if field.required else field.default
        keywords.append(inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default))
    return inspect.Signature(keywords)


def description(view: View) -> str:
    """What the view answers, its parameters, its payload."""
    described: list[type[msgspec.Struct]] = [view.params, view.payload]
    return "\n\n".join([f"{view.title}.", *(inspect.cleandoc(each.__doc__ or "") for each in described)])
