"""The engines of a Gaudi card in words and rows: how busy each class is, and what they wait for."""

from __future__ import annotations

from typing import Literal

from torch_tb_profiler.analyses.kernels.engines import EngineTimes, engine_times
from torch_tb_profiler.base.format import format_ratio
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.views._shared.text import Phrase, Text, join_phrases, link, sentences, text
from torch_tb_profiler.views.kernels.payload import EngineRow, Engines, RecipeRow

DEVICE_BOUND = 0.9
"""Engines that work for at least this share of the steps hardly wait."""

HOST_BOUND = 0.5
"""Graphs that are built in at least this share of the time without work are what the card waits for."""


def engines_of(trace: Trace) -> Engines | None:
    """None of a trace without such engines."""
    times = engine_times(trace)
    if times is None:
        return None
    bound = _bound(times)
    return Engines(
        headline=sentences(_busy(times), _verdict(times, bound)),
        bound=bound,
        classes=[
            EngineRow(each.name, each.engines, each.busy, each.busy / times.window if times.window else None)
            for each in times.classes
        ],
        recipes=[RecipeRow(each.id, each.name, each.nodes, each.busy, each.event) for each in times.recipes],
    )


def _bound(times: EngineTimes) -> Literal["device", "host"] | None:
    if times.window and times.busy >= DEVICE_BOUND * times.window:
        return "device"
    if times.graphs is not None and times.graphs >= HOST_BOUND * (times.window - times.busy) > 0:
        return "host"
    return None


def _busy(times: EngineTimes) -> Text:
    if not times.window:
        return text("There is no step to measure the engines against.")
    shares = [f"{each.name} {format_ratio(each.busy / times.window)}" for each in times.classes]
    return text(
        "{engines} work for {share} of the steps: {classes}.",
        engines=Phrase("The engines", link("trace")),
        share=format_ratio(times.busy / times.window),
        classes=join_phrases(shares),
    )


def _verdict(times: EngineTimes, bound: str | None) -> Text:
    if not times.window:
        return ()
    if bound == "device":
        return text("They hardly wait: the card is the limit.")
    if times.graphs is None:
        return text("The building of graphs is not recorded, so what they wait for is unknown.")
    share = format_ratio(times.graphs / (times.window - times.busy))
    if bound == "host":
        return text("For {share} of the rest, the host builds and launches graphs: it is the limit.", share=share)
    return text(
        "For {share} of the rest, the host builds and launches graphs; what else they wait for is not known.",
        share=share,
    )
