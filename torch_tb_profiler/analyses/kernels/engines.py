"""Busy time of the engines of a Gaudi card and of its recipes, and graph building on the host while they are idle.

window   |--------------------------------|     from the first to the last complete step
MME         [gemm]          [gemm]
TPC                [add ]          [add]
idle     ^^^             ^^               ^     no engine works
host     [SyncTensorsGraphInternal]             graphs are built and launched: is it what the card waits for?
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.utilization import complete_steps_window
from torch_tb_profiler.base.arrays import distinct_numbers
from torch_tb_profiler.base.intervals import Intervals, covered_time, subtract, total
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.engines import deduplicate_executions
from torch_tb_profiler.model.kinds import (
    DEVICE_KINDS,
    Kind,
    event_intervals,
    rows_of_kind,
)
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import ABSENT, Int32, Int64, Trace, name_mask
from torch_tb_profiler.model.vendors.gaudi import ENGINE_NAMES, thread_engines

GRAPH_CALLS = frozenset(
    (
        *("SyncTensorsGraphInternal", "ExecuteCachedGraph", "LaunchSyncTensorsGraph", "hpu_lazy"),
        *("LaunchRecipeTask", "add_new_recipe", "launch_recipe", "launch"),
    )
)
"""Calls that build and launch graphs; the bridge always records these, in lazy and in eager mode."""


class EngineClassTime(msgspec.Struct, frozen=True):
    """Engines of one class; `busy` ns of the window in which any of them works."""

    name: str
    engines: int
    busy: int


class RecipeTime(msgspec.Struct, frozen=True):
    """A compiled graph: its nodes that ran, the ns in which any did, and the row of the first."""

    id: int
    name: str
    nodes: int
    busy: int
    event: int


class EngineTimes(msgspec.Struct, frozen=True):
    """Time of the engines between the first and the last complete step, in ns.

    busy     any engine works
    graphs   no engine works, and the host builds or launches a graph; None if no such call is recorded
    recipes  of the whole trace, most time first
    """

    window: int
    busy: int
    graphs: int | None
    classes: tuple[EngineClassTime, ...]
    recipes: tuple[RecipeTime, ...]


@derived
def engine_times(trace: Trace) -> EngineTimes | None:
    """Return the busy times of the engines, None for a trace without such engines."""
    rows = rows_of_kind(trace, *DEVICE_KINDS)
    engine = thread_engines(trace)[trace.events.thread[rows]]
    rows, engine = rows[engine >= 0], engine[engine >= 0]
    if len(rows) == 0:
        return None
    begin, end = complete_steps_window(steps(trace))
    classes = []
    for number in distinct_numbers(engine):
        mine = rows[engine == number]
        lanes = len(distinct_numbers(trace.events.thread[mine]))
        classes.append(
            EngineClassTime(ENGINE_NAMES[number], lanes, _covered_ns(event_intervals(trace, mine), begin, end))
        )
    working = event_intervals(trace, rows)
    calls = rows_of_kind(trace, Kind.RUNTIME, Kind.DRIVER)
    calls = calls[name_mask(trace.strings, lambda name: name in GRAPH_CALLS)[trace.events.name[calls]]]
    graph_building = subtract(event_intervals(trace, calls), working)
    return EngineTimes(
        window=end - begin,
        busy=_covered_ns(working, begin, end),
        graphs=_covered_ns(graph_building, begin, end) if len(calls) else None,
        classes=tuple(classes),
        recipes=_sum_recipes(trace, rows),
    )


def _covered_ns(busy: Intervals, begin: int, end: int) -> int:
    return int(covered_time(busy, np.array([begin]), np.array([end]))[0]) if end > begin else 0


def _sum_recipes(trace: Trace, rows: Int32) -> tuple[RecipeTime, ...]:
    """Return the recipes, most time first; work without a recipe (copies of the host) is left out."""
    number: Int64 = trace.arg_int("recipeId", rows)
    names, texts = trace.arg_codes("recipeName", rows)
    order = np.argsort(number, kind="stable")
    recipes = []
    for part in np.split(order, np.flatnonzero(np.diff(number[order])) + 1):
        id, name, mine = int(number[part[0]]), int(names[part[0]]), rows[part]
        if id not in (ABSENT, 0):
            nodes, text = len(deduplicate_executions(trace, mine)), texts[name] if name >= 0 else ""
            recipes.append(RecipeTime(id, text, nodes, total(event_intervals(trace, mine)), int(mine[0])))
    return tuple(sorted(recipes, key=lambda each: -each.busy))
