"""The Modules tab."""

from torch_tb_profiler.model.modules.modules import modules
from torch_tb_profiler.view import NoParams, Tab, TraceView
from torch_tb_profiler.views._shared.module_parts import parts
from torch_tb_profiler.views.modules.build import build, unavailable
from torch_tb_profiler.views.modules.calls import CALLS
from torch_tb_profiler.views.modules.payload import ModulesPayload

TAB = Tab(
    "Where the time goes",
    TraceView(
        "modules",
        "Modules",
        NoParams,
        ModulesPayload,
        build,
        kept="asked",
        answers="Modules as a tree: how often they ran, how long on the host and the device.",
    ),
    unavailable,
    (*parts("modules", modules), CALLS),
)

__all__ = ["TAB"]
