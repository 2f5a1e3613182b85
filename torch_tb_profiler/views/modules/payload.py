"""What the Modules tab answers."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from torch_tb_profiler.views._shared.module_rows import ModuleClass, ModuleRow, UnplacedWork
from torch_tb_profiler.views._shared.text import Text


class ModulesPayload(msgspec.Struct, frozen=True):
    """The outermost modules in order of their first call.

    headline     which class of modules takes the most time; details: forward, backward, work of no module
    classes      sums over all modules of a class
    device_ns    all device time = sum of all `device_self_ns` + outside + unlinked
    outside      launched outside of any module
    unlinked     no launch and no operator is recorded for it
    has_device   the trace holds device work; has_backward: some backward work has its module
    reasons      field -> why it is null
    """

    headline: Text
    details: Text
    rows: list[ModuleRow]
    classes: list[ModuleClass]
    device_ns: int
    outside: UnplacedWork
    unlinked: UnplacedWork
    has_device: bool
    has_backward: bool
    reasons: Mapping[str, Text]
