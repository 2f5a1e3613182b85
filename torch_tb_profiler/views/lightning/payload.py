"""Payloads of the Lightning tab."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from torch_tb_profiler.views._shared.modules import ModuleClass, ModuleRow, UnplacedWork
from torch_tb_profiler.views._shared.text import Text


class HookRow(msgspec.Struct, frozen=True):
    """A hook and the hooks called inside it; times in ns.

    place           number of the hook
    name            "L.training_step"; `owner`: what Lightning puts before it (LightningModule, Strategy,
                    Callback, ...), "" if nothing
    event           row of its longest call, for the timeline
    operators       operators called directly by it
    host_self_ns    time outside the hooks and operators inside it
    operators_ns    host time of its operators: total = self + operators + totals of the hooks inside
    host_share      total / total of the outermost hooks
    device_*        device work launched while it ran, including by a backward pass that it waited for
    """

    place: int
    name: str
    owner: str
    event: int | None
    calls: int
    operators: int
    host_total_ns: int
    host_self_ns: int
    operators_ns: int
    host_mean_ns: float
    host_share: float | None
    device_total_ns: int
    device_self_ns: int
    device_share: float | None
    children: list[HookRow]


class LightningPayload(msgspec.Struct, frozen=True):
    """Hooks and modules, the outermost in order of their first call.

    headline  the hook with the most host time, or without hooks the class of modules; details: how many ran
    rows      the model: dotted names, `class_name` in full; each module inside the module that its name says
    classes   sums over all modules of a class
    device_ns all device time = sum of `device_self_ns` of `rows` + outside + unlinked
    reasons   why fields are null or empty, by field
    """

    headline: Text
    details: Text
    hooks: list[HookRow]
    rows: list[ModuleRow]
    classes: list[ModuleClass]
    device_ns: int
    outside: UnplacedWork
    unlinked: UnplacedWork
    has_device: bool
    has_backward: bool
    reasons: Mapping[str, Text]
