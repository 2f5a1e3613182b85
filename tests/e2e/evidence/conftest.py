"""A page that goes from view to view, for tests that look at all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
from playwright.sync_api import Browser, Page

from tests.e2e.conftest import MILLISECONDS, PAGES, WatchedPage
from tests.e2e.page.places import start

Roam = Callable[[str], AbstractContextManager[Page]]


@pytest.fixture(scope="module")
def roaming(browser: Browser) -> Iterator[dict[str, WatchedPage]]:
    """Yield the pages that tests of this file left for the next ones, by the address of their server."""
    pages: dict[str, WatchedPage] = {}
    yield pages
    for watched in pages.values():
        watched.page.context.close()


@pytest.fixture
def roam(browser: Browser, roaming: dict[str, WatchedPage], request: pytest.FixtureRequest) -> Roam:
    """Lends the page of a server, as the test before left it; after a test that failed, a new one.

    To open a page costs three times what it costs to go from one view to the next.
    """

    @contextmanager
    def roam(server: str) -> Iterator[Page]:
        watched = roaming.pop(server, None)
        if watched is None:
            context = browser.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
            context.set_default_timeout(MILLISECONDS)
            watched = WatchedPage(context.new_page())
            start(watched.page, server)
        request.node.stash.setdefault(PAGES, []).append(watched)
        try:
            yield watched.page
        except BaseException:
            request.addfinalizer(watched.page.context.close)  # once the report has its text
            raise
        roaming[server] = watched

    return roam
