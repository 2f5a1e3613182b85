"""The `nn.Module` that each event belongs to, as far as the calls around it say.

    Net_0 --------------------------------|       module call: a Python frame "nn.Module: Net_0"
      Linear_0 -----------|                       a call inside it: the place Net_0 / Linear_0
        aten::linear ---|                         belongs to Linear_0
          cudaLaunch |                            so does this, and the kernel that it launches
    evaluate_function: AddmmBackward0 ----|       backward of Linear_0, where its forward operator ran

A place in the model is the path of calls down to one instance (name and `Python module id`). An event belongs to
the innermost module call, or backward task, that runs on its thread when it starts. Traces of scripted models have
no such frames; their operators have the path as text (`Module Hierarchy`).
"""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.base.markers import MODULE_PREFIX
from torch_tb_profiler.base.memo import derived, prepared
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.model.calls.autograd import backward_tasks
from torch_tb_profiler.model.calls.calltree import (
    CallTree,
    build_call_tree,
    enclosing_operators,
    innermost_enclosing,
)
from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.kinds import Kind, rows_of_kind
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Int32, Trace, name_mask

HIERARCHY_KEY = "Module Hierarchy"

# New traces number the instances of a class: Linear_75.
_INSTANCE = lazy_regex(r"_\d+$")

# One step of a hierarchy: attribute(Class)::method. SELF is another method of the same module.
_STEP = lazy_regex(r"([^.()]+)\(([^()]*)\)::[^.]*")


class Modules(msgspec.Struct, frozen=True):
    """The m places of a model and the events that belong to each; NO_CODE stands for no place.

    names     name of each place, without "nn.Module: "; from a `Module Hierarchy`, "attribute (Class)"
    classes   class of each place
    ids       `Python module id` of each place, ABSENT where not recorded
    parent    int32[m]  the place around it, NO_CODE for the outermost; always smaller than its own code
    calls     int32[k]  rows of the module calls, by thread and time; none in traces of scripted models
    tasks     int32[j]  rows of the backward operators that belong to a place, in the same order
    nesting   call tree of calls and tasks
    code      int32[n]  the place that each event belongs to; a call to its own, device events to that of their
              launch, or where that stands for a launch at capture, to that of this one
    backward  bool[n]   whether the event is part of the backward pass of its place
    within    int32[n]  row of the innermost call or task around each event, NO_CODE if none
    """

    names: tuple[str, ...]
    classes: tuple[str, ...]
    ids: tuple[int, ...]
    parent: Int32
    calls: Int32
    tasks: Int32
    nesting: CallTree
    code: Int32
    backward: Bool
    within: Int32

    def path(self, code: int) -> tuple[str, ...]:
        """Return the names from the outermost module down to this place."""
        names: list[str] = []
        while code != NO_CODE:
            names.append(self.names[code])
            code = int(self.parent[code])
        return tuple(reversed(names))


@derived
def module_calls(trace: Trace) -> Int32:
    """Return the rows of the Python frames that are module calls, int32[k], in file order."""
    rows = rows_of_kind(trace, Kind.PYTHON)
    named = name_mask(trace.strings, lambda text: text.startswith(MODULE_PREFIX))
    numbered = trace.arg_int("Python module id", rows) != ABSENT
    calls: Int32 = rows[named[trace.events.name[rows]] | numbered]
    return calls


def has_module_calls(trace: Trace) -> bool:
    """Return whether `recorded_modules` would find a place, without attributing every event."""
    _, hierarchies = trace.arg_codes(HIERARCHY_KEY)
    return len(module_calls(trace)) > 0 or any(_hierarchy_place(text, ModulePlaces()) >= 0 for text in hierarchies)


@derived
def recorded_modules(trace: Trace) -> Modules:
    """Return the module of every event, forward and backward; device events have that of their launch."""
    if has_module_calls(trace):
        return _attribute_to_calls(trace)
    nowhere = np.full(len(trace), NO_CODE, np.int32)
    forest, none = build_call_tree(trace, module_calls(trace)), np.empty(0, np.int32)
    return Modules((), (), (), none, none, none, forest, nowhere, np.zeros(len(trace), np.bool_), nowhere)


@prepared
def _attribute_to_calls(trace: Trace) -> Modules:
    places = ModulePlaces()
    forest = build_call_tree(trace, module_calls(trace))
    in_backward = innermost_enclosing(trace, build_call_tree(trace, backward_tasks(trace).rows)) >= 0
    return attribute_events(trace, forest, _call_places(trace, forest, in_backward, places), places)


class ModulePlaces:
    """A numbering of places; the place around another one has the smaller number."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.classes: list[str] = []
        self.ids: list[int] = []
        self.parents: list[int] = []
        self._codes: dict[tuple[int, str, str, int], int] = {}
        self._first: dict[tuple[str, int], int] = {}

    def add(self, parent: int, name: str, kind: str, number: int = int(ABSENT)) -> int:
        """Return the place of an instance inside `parent` (NO_CODE: outermost), which is added if it is new."""
        key = (parent, kind, name, number)
        if key not in self._codes:
            self._codes[key] = len(self.names)
            self._first.setdefault((name, number), len(self.names))
            self.names.append(name)
            self.classes.append(kind)
            self.ids.append(number)
            self.parents.append(parent)
        return self._codes[key]

    def find_or_add(self, name: str, kind: str, number: int) -> int:
        """Return the first place of an instance, wherever it is; if there is none yet, add an outermost one."""
        first = self._first.get((name, number))
        return self.add(NO_CODE, name, kind, number) if first is None else first


def attribute_events(trace: Trace, forest: CallTree, code: Int32, places: ModulePlaces) -> Modules:
    """Attribute all events to places, given the tree of module calls and their places, int32[n]."""
    within = innermost_enclosing(trace, forest)
    plain = code < 0
    code = np.where(plain & (within >= 0), code[within], code)
    _read_hierarchy(trace, code, places)
    tasks = backward_tasks(trace)
    backward = np.zeros(len(trace), np.bool_)
    unresolved = tasks.forward >= 0
    # A task has the place of its forward operator, which may lie in a task (second derivatives): hence a loop.
    while (resolved := unresolved & (code[tasks.forward] >= 0)).any():
        rows = tasks.rows[resolved]
        code[rows], backward[rows], plain[rows] = code[tasks.forward[resolved]], True, False
        unresolved &= ~resolved
        forest = build_call_tree(trace, np.sort(np.concatenate([forest.rows, rows])))
        within = innermost_enclosing(trace, forest)
        inside = plain & (within >= 0)
        code = np.where(inside, code[within], code)
        backward |= inside & backward[within]
    _follow_launches(trace, code, backward)
    return Modules(
        names=tuple(places.names),
        classes=tuple(places.classes),
        ids=tuple(places.ids),
        parent=np.array(places.parents, np.int32),
        calls=forest.rows[~backward[forest.rows]],
        tasks=forest.rows[backward[forest.rows]],
        nesting=forest,
        code=code,
        backward=backward,
        within=within,
    )


def _call_places(trace: Trace, forest: CallTree, in_backward: Bool, places: ModulePlaces) -> Int32:
    """Return the place of every module call, int32[n].

    The backward pass may call modules again to recompute activations (checkpointing). Such a call has no calling
    module and belongs to the place of its instance in the forward pass.
    """
    code = np.full(len(trace), NO_CODE, np.int32)
    again = np.zeros(len(trace), np.bool_)
    levels = [forest.rows[forest.depth[forest.rows] == d] for d in range(int(forest.depth.max(initial=-1)) + 1)]
    for depth, rows in enumerate(levels):
        again[rows] = again[forest.parent[rows]] if depth else in_backward[rows]
    numbers = trace.arg_int("Python module id")
    for repeated in (False, True):
        for depth, rows in enumerate(levels):
            rows = rows[again[rows] == repeated]
            around = code[forest.parent[rows]] if depth else np.full(len(rows), NO_CODE)
            keys = np.stack([around, trace.events.name[rows], numbers[rows]], axis=1)
            distinct, which = np.unique(keys, axis=0, return_inverse=True)
            numbered = []
            for parent, text, number in distinct.tolist():
                name = trace.strings[text].removeprefix(MODULE_PREFIX) if text >= 0 else "(no name)"
                kind = _INSTANCE.sub("", name)
                if repeated and depth == 0:
                    numbered.append(places.find_or_add(name, kind, number))
                else:
                    numbered.append(places.add(parent, name, kind, number))
            code[rows] = np.array(numbered, np.int32)[which.reshape(-1)]
    return code


def _read_hierarchy(trace: Trace, code: Int32, places: ModulePlaces) -> None:
    """Set the place of events outside module calls, in place, from their `Module Hierarchy`."""
    texts, dictionary = trace.arg_codes(HIERARCHY_KEY)
    if not any(dictionary):
        return
    models = {kind for text in dictionary for attribute, kind in _STEP.findall(text) if attribute == "TOP"} - {""}
    # An optimized graph lacks the name of its model.
    model = next(iter(models)) if len(models) == 1 else ""
    of_text = np.array([_hierarchy_place(text, places, model) for text in dictionary] + [NO_CODE], np.int32)
    code[:] = np.where(code < 0, of_text[texts], code)
    around = enclosing_operators(trace)
    code[:] = np.where((code < 0) & (around >= 0), code[around], code)


def _hierarchy_place(text: str, places: ModulePlaces, model: str = "") -> int:
    """Return the place that a hierarchy describes, NO_CODE for a plain function (`TOP()::defaults.`)."""
    steps = [step for step in _STEP.findall(text) if step[0] != "SELF"]
    place = NO_CODE
    for attribute, kind in steps if len(steps) > 1 or (steps and steps[0][1]) else ():
        if attribute == "TOP":
            name = kind = kind or model
        else:
            name = f"{attribute} ({kind})"
        place = places.add(place, name, kind) if name else place
    return place


def _follow_launches(trace: Trace, code: Int32, backward: Bool) -> None:
    """Set the place of device events, in place, to that of their launch, else of their operator."""
    links = device_links(trace)
    launch, operator = links.launch, links.operator
    placed = (launch >= 0) & (code[launch] >= 0)
    source = np.where(placed, launch, operator)
    code[links.rows] = np.where(source >= 0, code[source], NO_CODE)
    backward[links.rows] = (source >= 0) & backward[source]
