"""Hooks (`[pl][profile]`) and modules (`[pl][module]`) marked by Lightning's profiler.

    [pl][profile][Strategy]SingleDeviceStrategy.training_step      hook training_step of a Strategy
      [pl][module]torch.nn.modules.container.Sequential: net       module net
        [pl][module]torch.nn.modules.conv.Conv2d: net.0            module net.0, inside net

The marks are annotations in new files and operators in old ones; both count. Their copies on a device's timeline
are ignored.
"""

from __future__ import annotations

import re

import numpy as np

from torch_tb_profiler.base.arrays import distinct
from torch_tb_profiler.base.markers import LIGHTNING_HOOK_PREFIX, LIGHTNING_MODULE_PREFIX
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.model.calls.autograd import backward_tasks
from torch_tb_profiler.model.calls.calltree import build_call_tree, innermost_enclosing
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.kinds import DEVICE_KINDS, Kind, event_kinds, slice_mask
from torch_tb_profiler.model.module_calls import ModulePlaces, Modules, attribute_events
from torch_tb_profiler.model.trace import NO_CODE, Int32, Trace, name_mask

# [Owner]Class.hook as in [Strategy]SingleDeviceStrategy.training_step, or [Class].hook; some have no owner.
_OWNER = lazy_regex(r"^\[(?P<owner>[^\]]*)\]\.?(?P<name>.*)$", re.DOTALL)


def _find_marks(trace: Trace, prefix: str) -> Int32:
    """Return the rows of the host slices whose name begins with `prefix`, int32[k]."""
    named = name_mask(trace.strings, lambda text: text.startswith(prefix))
    if not named.any():
        return np.empty(0, np.int32)
    named = named[trace.events.name]
    copies = np.isin(event_kinds(trace), (*DEVICE_KINDS, Kind.DEVICE_ANNOTATION))
    return np.flatnonzero(named & ~copies & slice_mask(trace)).astype(np.int32)


def has_lightning_marks(trace: Trace) -> bool:
    """Return whether Lightning's profiler marked a hook or a module."""
    return (
        len(_find_marks(trace, LIGHTNING_HOOK_PREFIX)) > 0 or len(_find_marks(trace, LIGHTNING_MODULE_PREFIX)) > 0
    )


@derived
def lightning_modules(trace: Trace) -> Modules:
    """Return modules as places by their dotted names.

    A parent that isn't recorded (a list is never called) is skipped.
    """
    places = ModulePlaces()
    rows = _find_marks(trace, LIGHTNING_MODULE_PREFIX)
    texts = {int(code): _class_and_name(trace.strings[code]) for code in distinct(trace.events.name[rows])}
    by_name: dict[str, int] = {}
    # Shorter names come first, so that a place follows those around it.
    for kind, name in sorted(texts.values(), key=lambda text: (text[1].count("."), text[1])):
        by_name.setdefault(name, places.add(_find_parent(name, by_name), name, kind))
    code = np.full(len(trace), NO_CODE, np.int32)
    code[rows] = [by_name[texts[int(text)][1]] for text in trace.events.name[rows]]
    return attribute_events(trace, build_call_tree(trace, rows), code, places)


def _class_and_name(text: str) -> tuple[str, str]:
    """Return (class, dotted name) of a module's mark."""
    kind, colon, name = text.removeprefix(LIGHTNING_MODULE_PREFIX).partition(": ")
    return (kind, name) if colon else ("", kind)


def _find_parent(name: str, known: dict[str, int]) -> int:
    while "." in name:
        name = name.rpartition(".")[0]
        if name in known:
            return known[name]
    return NO_CODE


@derived
def lightning_hooks(trace: Trace) -> Modules:
    """Return hooks as places: the path of hooks down to each, with its owner as the class.

    Backward work belongs to the hook that waits for it, whatever thread it runs on.
    """
    places = ModulePlaces()
    forest = build_call_tree(trace, _find_marks(trace, LIGHTNING_HOOK_PREFIX))
    code = np.full(len(trace), NO_CODE, np.int32)
    for row in forest.rows[np.argsort(forest.depth[forest.rows], kind="stable")].tolist():
        above = int(forest.parent[row])
        text = trace.strings[trace.events.name[row]].removeprefix(LIGHTNING_HOOK_PREFIX)
        match = _OWNER.match(text)
        owner, name = (match["owner"], match["name"]) if match else ("", text)
        code[row] = places.add(int(code[above]) if above != NO_CODE else NO_CODE, name, owner)
    within = innermost_enclosing(trace, forest)
    hook_code = np.where((code < 0) & (within >= 0), code[within], code)
    waiting = innermost_enclosing(trace, forest, _find_waiting_threads(trace, forest.rows))
    _follow_launches(trace, hook_code, code, waiting)
    return Modules(
        names=tuple(places.names),
        classes=tuple(places.classes),
        ids=tuple(places.ids),
        parent=np.array(places.parents, np.int32),
        calls=forest.rows,
        tasks=forest.rows[:0],
        nesting=forest,
        code=hook_code,
        backward=np.zeros(len(trace), np.bool_),
        within=within,
    )


def _find_waiting_threads(trace: Trace, hooks: Int32) -> Int32:
    """Return the thread of every event, int32[n]; for the autograd engine's, the thread with the most hooks."""
    thread: Int32 = trace.events.thread.copy()
    if len(hooks):
        engine = distinct(thread[backward_tasks(trace).rows])
        thread[np.isin(thread, engine)] = np.bincount(thread[hooks]).argmax()
    return thread


def _follow_launches(trace: Trace, hook_code: Int32, code: Int32, waiting: Int32) -> None:
    """Set the hook of device events, in place, to the one that ran or waited when they were launched."""
    links = device_links(trace)
    source = np.where(links.launch >= 0, links.launch, links.operator)
    hook = np.where(source >= 0, waiting[source], NO_CODE)
    hook_code[links.rows] = np.where(hook >= 0, code[hook], NO_CODE)
