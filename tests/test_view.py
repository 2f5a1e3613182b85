"""The contract of views: parameters as text, and what every registered view promises."""

from __future__ import annotations

from typing import Literal

import msgspec
import pytest

from torch_tb_profiler.base.errors import NotFoundError, UsageError
from torch_tb_profiler.ingest.formats import file_format_by_kind
from torch_tb_profiler.view import FileParams, FileView, Page, RunView, TraceView, parse_params
from torch_tb_profiler.views import CACHED_VIEWS, all_tabs, all_views, find_view


class Params(Page, frozen=True, kw_only=True):
    event: int
    sort: Literal["size", "name"] = "size"
    share: float = 0.5
    python: bool = False


def test_text_becomes_typed_values() -> None:
    given = {"event": "7", "sort": "name", "share": "0.25", "python": "true", "limit": "3"}
    assert parse_params(Params, given) == Params(event=7, sort="name", share=0.25, python=True, limit=3)
    assert parse_params(Params, {"event": "-1", "python": "0"}) == Params(event=-1)


@pytest.mark.parametrize(
    ("given", "message", "hint"),
    [
        ({}, "missing parameter 'event'", None),
        ({"event": "7", "color": "red"}, "unknown parameter 'color'", "event, first, limit, python, share, sort"),
        ({"event": "seven"}, "'event' cannot be 'seven'", "a whole number"),
        ({"event": "7", "sort": "weight"}, "'sort' cannot be 'weight'", "one of size, name"),
        ({"event": "7", "python": "maybe"}, "'python' cannot be 'maybe'", "true or false"),
        ({"event": "7", "share": "half"}, "'share' cannot be 'half'", "a number"),
        ({"event": "7", "first": "-1"}, "'first' cannot be '-1'", "a whole number of at least 0"),
        ({"event": "7", "limit": "-1"}, "'limit' cannot be '-1'", "a whole number of at least 0"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_options(
    given: dict[str, str], message: str, hint: str | None
) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        parse_params(Params, given)
    assert (hint or "") in (caught.value.hint or "")


def test_a_page_is_a_part_of_the_rows() -> None:
    rows = list(range(10))
    assert rows[Page().rows] == rows
    assert rows[Page(first=8, limit=3).rows] == [8, 9]
    assert rows[Page(first=2, limit=0).rows] == [] and rows[Page(first=20).rows] == []


@pytest.mark.parametrize("view", all_views(), ids=lambda view: view.slug)
def test_every_view_keeps_its_contract(view: TraceView | RunView | FileView) -> None:  # type: ignore[type-arg]
    assert find_view(view.slug) is view
    assert issubclass(view.params, msgspec.Struct) and issubclass(view.payload, msgspec.Struct)
    assert view.tab in {tab.slug for tab in all_tabs()}
    if isinstance(view, FileView):
        assert issubclass(view.params, FileParams)
        assert file_format_by_kind(view.format).kind == view.format
    cached = view.cached != "never" if isinstance(view, TraceView) else isinstance(view, FileView) and view.cached
    assert (view.slug in CACHED_VIEWS) == cached, "CACHED_VIEWS must list exactly the cached views"
    if cached:
        view.params()  # it is built without a parameter


def test_an_unknown_view_is_refused_with_the_known_tabs() -> None:
    with pytest.raises(NotFoundError) as caught:
        find_view("nonsense")
    assert "overview" in (caught.value.hint or "")
