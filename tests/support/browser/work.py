"""How long a page's main thread works, from Chromium's own tracing.

CPU time of the thread, so that what else runs on the machine does not count.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Browser, Page

CATEGORIES = ["devtools.timeline", "disabled-by-default-devtools.timeline"]
# Names in the trace: a task of a thread, and the drawing of a frame, which only the thread of a page does.
TASK, DRAWS = "RunTask", "FireAnimationFrame"


def record(browser: Browser, page: Page, action: Callable[[], None]) -> list[dict[str, Any]]:
    """Return the events of the page's main thread while `action` runs."""
    browser.start_tracing(page=page, categories=CATEGORIES)
    action()
    events = json.loads(browser.stop_tracing())["traceEvents"]
    main = statistics.mode((each["pid"], each["tid"]) for each in events if each["name"] == DRAWS)
    return [each for each in events if (each["pid"], each["tid"]) == main]


def tasks(thread: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the tasks of a thread in order; `dur` is wall time, `tdur` CPU time, us."""
    return sorted((each for each in thread if each["name"] == TASK), key=lambda task: task["ts"])
