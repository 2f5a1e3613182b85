"""Titles of what the critical path consists of: categories, targets of what-ifs, and places."""

from __future__ import annotations

from collections.abc import Mapping

from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.model.vendors.recording_options import RecordingTopic, recording_option
from torch_tb_profiler.views._shared.text import link
from torch_tb_profiler.views._shared.wording import CAUSE_TITLES

CATEGORY_TITLES = {
    **CAUSE_TITLES,
    "kernel": "Kernels",
    "communication": "Communication",
    "rank_wait": "Waiting for other ranks",
    "copy": "Copies and memsets",
    "stream_wait": "Stream wait latency",
    "wake_up": "Wake-up after a wait",
    "hand_off": "Hand-off between threads",
}
"""Category -> its title; what a device idles for has the same one as in Idle time."""

_UNNAMED_TARGET_TITLES = {
    "data_loading": "Data loading",
    "allocator": "The allocator",
    "wait": "Waiting in locks, queues and sleeps",
    "communication": "All communication",
    "host": "All host work",
    "device": "All kernels and copies",
}

NO_PLACE_TITLES = {
    "operator": "Outside operators",
    "module": "Outside modules",
    "line": "No source line recorded",
}
"""Title of the path segments that belong to no place of a kind."""

_MISSING_PLACES: dict[str, tuple[str, RecordingTopic]] = {
    "operator": ("no operators were recorded", "operators"),
    "module": ("no nn.Module was recorded", "modules"),
    "line": ("no Python source was recorded", "stacks"),
}
"""Why no segment of the path belongs to a place of a kind, and what records it."""

TIMELINE_WITH_PATH = link("trace", path="true")
"""The timeline with the path highlighted."""


def target_title(kind: str, name: str, kernels: Mapping[str, str]) -> str:
    """Return the title of a target; `kernels`: kernel name -> short name."""
    if not name:
        return _UNNAMED_TARGET_TITLES[kind]
    return kernels.get(name, name) if kind == "kernel" else name


def category_link(category: str) -> str | None:
    """Return what a click on a category opens."""
    tabs = {"operator": "operators", "launch_call": "operators", "kernel": "kernels", "copy": "kernels"}
    return link(tabs[category]) if category in tabs else TIMELINE_WITH_PATH


def missing_places(trace: Trace, by: str) -> str:
    """Return why no segment of the path belongs to a place of a kind."""
    reason, topic = _MISSING_PLACES[by]
    return f"{reason} ({recording_option(trace, topic)})"
